"""The outbox: durable instructions. Processes claim them in batches; every later write names the claim it relies on."""

import json
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from lamplighter.domain.delivery.outbox import SETTLED, Item, ItemState, NotClaimed
from lamplighter.domain.delivery.reach import Reach, need_of
from lamplighter.store.engine import Db, Row, Write, as_json, instant, instant_or_none, stamp, stamp_or_none

TOPIC = "outbox"
LATER = "outbox.later"
"""Topic: an item was added that is due a little later; whoever looks by then need not look at once."""

_COLUMNS = """
    id, kind, payload, due_at, state, attempts, recoveries, claims, claimed_by, claimed_at, last_error"""
INSERT = Write(
    """
    INSERT INTO outbox (
        city_id, id, kind, run_id, payload, state, due_at, needs, claims, claimed_by, claimed_at)
    SELECT :city, :id, :kind, :run, :payload, :state, :due_at, :needs, :claims, :claimed_by, :claimed_at {each}""",
    whole="due_at claims claimed_at",
    json="payload",
)
# the index outbox_due serves this
DUE = f"""
    SELECT {_COLUMNS} FROM outbox WHERE city_id = :city AND state = 'pending' AND due_at <= :now {{where}}
    ORDER BY due_at, id LIMIT :limit {{skip_claimed}}"""
SWAP = Write(
    """
    UPDATE outbox SET state = :state, due_at = :due_at, attempts = :attempts, recoveries = :recoveries,
        claims = :claims, claimed_by = :claimed_by, claimed_at = :claimed_at, last_error = :last_error,
        settled_at = :settled_at
    {each} WHERE city_id = :city AND id = :id AND state = :state_before AND claims = :claims_before""",
    whole="due_at attempts recoveries claims claimed_at settled_at claims_before",
    key="id",
)
# the index outbox_due serves this
NEXT_DUE = """
    SELECT due_at FROM outbox WHERE city_id = :city AND state = 'pending' {where} ORDER BY due_at LIMIT 1"""
GET = f"SELECT {_COLUMNS} FROM outbox WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
# the index outbox_claimed serves this
CLAIMED_BY = f"""
    SELECT {_COLUMNS} FROM outbox WHERE city_id = :city AND state = 'claimed' AND claimed_by = :owner
    ORDER BY id {{for_update}}"""
# the index outbox_claimed serves this
HUNG = f"""
    SELECT {_COLUMNS} FROM outbox WHERE city_id = :city AND state = 'claimed' AND claimed_at < :before
    ORDER BY id LIMIT :limit {{skip_claimed}}"""
# the index outbox_due serves this
NEEDED = """
    SELECT needs, count(*) AS count FROM outbox WHERE city_id = :city AND state = 'pending' AND needs IS NOT NULL
    GROUP BY needs ORDER BY needs"""
COUNTS = "SELECT state, count(*) AS count FROM outbox WHERE city_id = :city AND state = 'pending' GROUP BY state"
# the index outbox_failed serves this
GIVEN_UP = f"""
    SELECT {_COLUMNS}, settled_at FROM outbox WHERE city_id = :city AND state = 'failed' ORDER BY id DESC
    LIMIT :limit"""
# the indexes outbox_failed, outbox_due and outbox_claimed serve this, the primary key for settled ones
PAGE = f"""
    SELECT {_COLUMNS}, settled_at FROM outbox WHERE city_id = :city AND state = :state AND id < :before
    ORDER BY id DESC LIMIT :limit"""
# the partial indexes outbox_due and outbox_claimed serve these: what is settled is in neither
OPEN_ITEMS = """
    SELECT 'pending' AS state, count(*) AS count FROM outbox WHERE city_id = :city AND state = 'pending'
    UNION ALL SELECT 'claimed', count(*) FROM outbox WHERE city_id = :city AND state = 'claimed'"""
# Ids are in order of time, so the primary key finds the oldest.
PRUNE = """
    DELETE FROM outbox WHERE city_id = :city AND id IN (
        SELECT id FROM outbox WHERE city_id = :city AND id < :before_id AND state IN ('done', 'failed')
        AND settled_at < :before ORDER BY id LIMIT :limit)"""


class Standing(NamedTuple):
    """An item, and when it was settled; for one that is not, when it is due."""

    item: Item
    settled_at: datetime


class Outbox:
    def __init__(self, db: Db, city: str, wakes: set[str]) -> None:
        self._db = db
        self._city = city
        self._wakes = wakes

    def add(self, item: Item, *, later: bool = False) -> None:
        """`later`: it is due within two seconds, and not yet. One that is claimed already wakes nobody."""
        if item.state is ItemState.PENDING:
            self._wakes.add(LATER if later else TOPIC)
        params = {"id": item.id, "kind": item.kind, "due_at": stamp(item.due_at), "state": item.state.value}
        params |= {"claims": item.claims, "claimed_by": item.claimed_by, "claimed_at": stamp_or_none(item.claimed_at)}
        params |= {"run": item.payload.get("run"), "needs": need_of(item.kind, item.payload)}
        self._db.write(INSERT, self._city, params | {"payload": as_json(item.payload)})

    def due(
        self,
        now: datetime,
        *,
        limit: int,
        run: str | None = None,
        reach: Reach | None = None,
        without: Collection[str] = (),
    ) -> list[Item]:
        """Pending items that are due, the longest due first, locked; only those of `run` and within `reach`, if set,
        and none of the kinds `without`.
        """
        where, params = _within(reach, without)
        params |= {"now": stamp(now), "limit": limit}
        if run is not None:
            where, params = where + " AND run_id = :run", params | {"run": run}
        return self._many(DUE.replace("{where}", where), params)

    def next_due_at(self, *, reach: Reach | None = None, without: Collection[str] = ()) -> datetime | None:
        where, params = _within(reach, without)
        row = self._db.row(NEXT_DUE.replace("{where}", where), params | {"city": self._city})
        return None if row is None else instant(row["due_at"])

    def get(self, item: str) -> Item | None:
        found = self._many(GET, {"id": item})
        return found[0] if found else None

    def lock(self, item: str) -> Item | None:
        found = self._many(LOCK, {"id": item})
        return found[0] if found else None

    def swap(self, before: Item, after: Item, *, now: datetime) -> None:
        """Raises NotClaimed when another process has changed it since."""
        params = {
            "id": after.id,
            "state": after.state.value,
            "due_at": stamp(after.due_at),
            "attempts": after.attempts,
            "recoveries": after.recoveries,
            "claims": after.claims,
            "claimed_by": after.claimed_by,
            "claimed_at": stamp_or_none(after.claimed_at),
            "last_error": after.last_error,
            "settled_at": stamp(now) if after.state in SETTLED else None,
            "state_before": before.state.value,
            "claims_before": before.claims,
        }
        if not self._db.write(SWAP, self._city, params):
            raise NotClaimed(before)
        if after.state is ItemState.PENDING:
            self._wakes.add(TOPIC)

    def claimed_by(self, owner: str) -> list[Item]:
        return self._many(CLAIMED_BY, {"owner": owner})

    def hung(self, before: datetime, *, limit: int) -> list[Item]:
        """Claimed before then and not settled."""
        return self._many(HUNG, {"before": stamp(before), "limit": limit})

    def given_up(self, *, limit: int = 1000) -> list[Standing]:
        """Items that failed for good, newest first."""
        rows = self._db.rows(GIVEN_UP, {"city": self._city, "limit": limit})
        return [_standing(row) for row in rows]

    def page(self, state: ItemState, *, before: str | None = None, limit: int = 50) -> list[Standing]:
        """Newest first; `before` is the last id of the previous page."""
        params = {"city": self._city, "state": state.value, "before": before or "~", "limit": limit}
        return [_standing(row) for row in self._db.rows(PAGE, params)]

    def pending(self) -> int:
        return sum(row["count"] for row in self._db.rows(COUNTS, {"city": self._city}))

    def needed(self) -> dict[str, int]:
        """How many pending items wait for each node or rig."""
        return {row["needs"]: row["count"] for row in self._db.rows(NEEDED, {"city": self._city})}

    def open_items(self) -> dict[str, int]:
        """How many items are pending, and how many are claimed."""
        return {row["state"]: row["count"] for row in self._db.rows(OPEN_ITEMS, {"city": self._city})}

    def prune(self, *, before: datetime, before_id: str, limit: int) -> int:
        params = {"city": self._city, "before": stamp(before), "before_id": before_id, "limit": limit}
        return self._db.execute(PRUNE, params)

    def _many(self, sql: str, params: dict[str, object]) -> list[Item]:
        return [_item(row) for row in self._db.rows(sql, params | {"city": self._city})]


def _within(reach: Reach | None, without: Collection[str] = ()) -> tuple[str, dict[str, object]]:
    """The condition for items that a process may take; without `reach`, where only one process could take them, all
    but those of the kinds `without`.
    """
    where, params = [], dict[str, object]()
    if reach is not None:
        where.append("AND (needs IS NULL OR needs {any:needs})")
        params["needs"] = json.dumps(reach.needs)
    left_out = {*without, *(reach.left_out if reach is not None else ())}
    if left_out:
        where.append("AND NOT kind {any:left_out}")
        params["left_out"] = json.dumps(sorted(left_out))
    return " ".join(where), params


def _standing(row: Row) -> Standing:
    item = _item(row)
    return Standing(item, instant_or_none(row["settled_at"]) or item.due_at)


def _item(row: Row) -> Item:
    return Item(
        id=row["id"],
        kind=row["kind"],
        payload=json.loads(row["payload"]),
        due_at=instant(row["due_at"]),
        state=ItemState(row["state"]),
        attempts=row["attempts"],
        recoveries=row["recoveries"],
        claims=row["claims"],
        claimed_by=row["claimed_by"],
        claimed_at=instant_or_none(row["claimed_at"]),
        last_error=row["last_error"],
    )
