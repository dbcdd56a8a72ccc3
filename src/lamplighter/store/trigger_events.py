"""Trigger events: what became of each firing or skip of a trigger; repeats of one skip are counted on one row."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, Row, Write, instant, instant_or_none, stamp, stamp_or_none

_COLUMNS = """
    id, automation_id, automation, trigger_id, kind, status, reason, slot, dedup_key, payload, run_id, count, due_at,
    first_at, last_at"""
INSERT = Write(
    f"""
    INSERT INTO trigger_events (city_id, {_COLUMNS})
    SELECT :city, :id, :automation_id, :automation, :trigger, :kind, :status, :reason, :slot, :dedup_key, :payload,
            :run, :count, :due_at, :first_at, :last_at {{each}}""",
    whole="count due_at first_at last_at",
    json="payload",
)
INSERT_ONCE = INSERT + " WHERE true ON CONFLICT DO NOTHING"
REPEAT = """
    UPDATE trigger_events SET count = count + :count, last_at = :now
    WHERE city_id = :city AND id = :id AND status = 'skipped' AND reason = :reason"""
# Retention may have deleted the row.
SETTLE = Write(
    "UPDATE trigger_events SET status = :status, reason = :reason {each} WHERE city_id = :city AND id = :id",
    key="id",
    must=False,
)
GET = f"SELECT {_COLUMNS} FROM trigger_events WHERE city_id = :city AND id = :id"
# the index trigger_events_once serves this
OF_KEY = f"""
    SELECT {_COLUMNS} FROM trigger_events
    WHERE city_id = :city AND automation_id = :automation AND trigger_id = :trigger AND dedup_key = :key"""
SOME = f"SELECT {_COLUMNS} FROM trigger_events WHERE city_id = :city AND id {{any:ids}}"
# the index trigger_events_of serves this
HISTORY = f"""
    SELECT {_COLUMNS} FROM trigger_events WHERE city_id = :city AND automation = :automation AND id < :before
    ORDER BY id DESC LIMIT :limit"""
LAST_SKIP = f"""
    SELECT {_COLUMNS} FROM trigger_events WHERE city_id = :city AND automation = :automation AND status = 'skipped'
    ORDER BY id DESC LIMIT 1"""
# Ids are in order of time, so the primary key finds the oldest; those of runs that have not ended stay.
PRUNE = """
    DELETE FROM trigger_events WHERE city_id = :city AND id IN (
        SELECT id FROM trigger_events AS old WHERE city_id = :city AND id < :before_id AND last_at < :before
        AND (run_id IS NULL OR NOT EXISTS (
            SELECT 1 FROM runs WHERE runs.city_id = old.city_id AND runs.id = old.run_id AND runs.ended_at IS NULL))
        ORDER BY id LIMIT :limit)"""


@record
class TriggerEvent:
    id: str
    automation_id: str
    automation: str
    trigger: str
    kind: str
    status: str
    reason: str
    first_at: datetime
    last_at: datetime
    slot: str | None = None
    dedup_key: str | None = None
    payload: Mapping[str, Any] | None = None
    run: str | None = None
    count: int = 1
    due_at: datetime | None = None


class TriggerEvents:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def insert(self, event: TriggerEvent) -> bool:
        """False when the trigger has already had an event of that dedup key."""
        params = {
            "id": event.id,
            "automation_id": event.automation_id,
            "automation": event.automation,
            "trigger": event.trigger,
            "kind": event.kind,
            "status": event.status,
            "reason": event.reason,
            "slot": event.slot,
            "dedup_key": event.dedup_key,
            "payload": None if event.payload is None else dict(event.payload),
            "run": event.run,
            "count": event.count,
            "due_at": stamp_or_none(event.due_at),
            "first_at": stamp(event.first_at),
            "last_at": stamp(event.last_at),
        }
        if event.dedup_key is None:
            return self._db.write(INSERT, self._city, params)
        return self._db.execute(INSERT_ONCE, {"city": self._city, **INSERT.encoded(params)}) == 1

    def repeat(self, event: str, reason: str, now: datetime, *, count: int = 1) -> bool:
        """Add `count` to the row of a skip; False when that row has another reason or is gone."""
        params = {"city": self._city, "id": event, "reason": reason, "now": stamp(now), "count": count}
        return self._db.execute(REPEAT, params) == 1

    def settle(self, event: str, status: str, reason: str) -> None:
        self._db.write(SETTLE, self._city, {"id": event, "status": status, "reason": reason})

    def get(self, event: str) -> TriggerEvent | None:
        row = self._db.row(GET, {"city": self._city, "id": event})
        return None if row is None else _event(row)

    def of_key(self, automation: str, trigger: str, key: str) -> TriggerEvent | None:
        params = {"city": self._city, "automation": automation, "trigger": trigger, "key": key}
        row = self._db.row(OF_KEY, params)
        return None if row is None else _event(row)

    def some(self, ids: Iterable[str]) -> dict[str, TriggerEvent]:
        rows = self._db.rows(SOME, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: _event(row) for row in rows}

    def history(self, automation: str, *, before: str | None = None, limit: int = 50) -> list[TriggerEvent]:
        """Newest first; `before` is the last id of the previous page."""
        params = {"city": self._city, "automation": automation, "before": before or "~", "limit": limit}
        return [_event(row) for row in self._db.rows(HISTORY, params)]

    def last_skip(self, automation: str) -> TriggerEvent | None:
        row = self._db.row(LAST_SKIP, {"city": self._city, "automation": automation})
        return None if row is None else _event(row)

    def prune(self, *, before: datetime, before_id: str, limit: int) -> int:
        params = {"city": self._city, "before": stamp(before), "before_id": before_id, "limit": limit}
        return self._db.execute(PRUNE, params)


def _event(row: Row) -> TriggerEvent:
    return TriggerEvent(
        id=row["id"],
        automation_id=row["automation_id"],
        automation=row["automation"],
        trigger=row["trigger_id"],
        kind=row["kind"],
        status=row["status"],
        reason=row["reason"],
        first_at=instant(row["first_at"]),
        last_at=instant(row["last_at"]),
        slot=row["slot"],
        dedup_key=row["dedup_key"],
        payload=None if row["payload"] is None else json.loads(row["payload"]),
        run=row["run_id"],
        count=row["count"],
        due_at=instant_or_none(row["due_at"]),
    )
