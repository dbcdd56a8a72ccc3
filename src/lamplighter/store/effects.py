"""The ledger of side effects: one row per effect, with its intent written before and its result after it."""

import json
from datetime import datetime

from lamplighter.domain.delivery.effects import Effect, EffectState
from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp, stamp_or_none

_COLUMNS = "id, run_id, kind, request, state, tries, doubts, result, intended_at, done_at"
GET = f"SELECT {_COLUMNS} FROM side_effects WHERE city_id = :city AND id = :id {{for_update}}"
# the index side_effects_of_run serves this
OF = f"SELECT {_COLUMNS} FROM side_effects WHERE city_id = :city AND run_id = :run ORDER BY id"
PUT = f"""
    INSERT INTO side_effects (city_id, {_COLUMNS})
    VALUES (:city, :id, :run, :kind, :request, :state, :tries, :doubts, :result, :intended_at, :done_at)
    ON CONFLICT (city_id, id) DO UPDATE SET state = excluded.state, tries = excluded.tries,
        doubts = excluded.doubts, result = excluded.result, done_at = excluded.done_at"""
FORGET = "DELETE FROM side_effects WHERE city_id = :city AND id = :id AND state = 'intended'"
# the index side_effects_by_age serves this; an intent without a result stays: the effect may have happened
PRUNE = """
    DELETE FROM side_effects WHERE city_id = :city AND id IN (
        SELECT id FROM side_effects WHERE city_id = :city AND intended_at < :before AND state = 'done'
        ORDER BY intended_at LIMIT :limit)"""


class Effects:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def lock(self, effect: str) -> Effect | None:
        row = self._db.row(GET, {"city": self._city, "id": effect})
        return None if row is None else _effect(row)

    def put(self, effect: Effect) -> None:
        params = {
            "city": self._city,
            "id": effect.id,
            "run": effect.run,
            "kind": effect.kind,
            "request": effect.request,
            "state": effect.state.value,
            "tries": effect.tries,
            "doubts": effect.doubts,
            "result": json.dumps(dict(effect.result)),
            "intended_at": stamp(effect.intended_at),
            "done_at": stamp_or_none(effect.done_at),
        }
        self._db.execute(PUT, params)

    def forget(self, effect: str) -> None:
        """Delete an intent that the destination refused; an effect that was carried out stays."""
        self._db.execute(FORGET, {"city": self._city, "id": effect})

    def of(self, run: str) -> list[Effect]:
        return [_effect(row) for row in self._db.rows(OF, {"city": self._city, "run": run})]

    def prune(self, *, before: datetime, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})


def _effect(row: Row) -> Effect:
    return Effect(
        id=row["id"],
        kind=row["kind"],
        request=row["request"],
        intended_at=instant(row["intended_at"]),
        run=row["run_id"],
        state=EffectState(row["state"]),
        tries=row["tries"],
        doubts=row["doubts"],
        result=json.loads(row["result"]),
        done_at=instant_or_none(row["done_at"]),
    )
