"""Bulk actions, and what became of each run that they are about."""

from collections.abc import Sequence
from datetime import datetime

from lamplighter.domain.runs.bulk import BulkAction, BulkOutcome, BulkState
from lamplighter.kit.records import record
from lamplighter.store.engine import Db, stamp
from lamplighter.store.tables import Table

TOPIC = "bulk"
"""Woken with every run that a bulk action is done with."""


@record
class BulkItem:
    """`made` is the run that the action made, `reason` why it was refused."""

    number: int
    run_id: str
    outcome: BulkOutcome = BulkOutcome.WAITING
    reason: str = ""
    made: str | None = None
    at: datetime | None = None


BULKS = Table(BulkAction)
ITEMS = Table(BulkItem)
_COUNTED = ("state", "done", "refused", "ended_at", "aborted_by")
_SETTLED = ("outcome", "reason", "made", "at")
ADD = f"INSERT INTO bulk_actions (city_id, {BULKS.listed()}) VALUES (:city, {BULKS.given()})"
ADD_ITEM = "INSERT INTO bulk_items (city_id, bulk_id, number, run_id) VALUES (:city, :bulk, :number, :run)"
SAVE = f"UPDATE bulk_actions SET {BULKS.assigned(*_COUNTED)} WHERE city_id = :city AND id = :id"
SETTLE = f"""
    UPDATE bulk_items SET {ITEMS.assigned(*_SETTLED)}
    WHERE city_id = :city AND bulk_id = :bulk AND number = :number AND outcome = 'waiting'"""
# the primary keys serve all of these
GET = f"SELECT {BULKS.listed()} FROM bulk_actions WHERE city_id = :city AND id = :id {{lock}}"
PAGE = f"""
    SELECT {BULKS.listed()} FROM bulk_actions WHERE city_id = :city {{where}} AND id < :before
    ORDER BY id DESC LIMIT :limit"""
LIKE = "SELECT id FROM bulk_actions WHERE city_id = :city ORDER BY id DESC LIMIT :limit"
WAITING = f"""
    SELECT {ITEMS.listed()} FROM bulk_items WHERE city_id = :city AND bulk_id = :bulk AND number >= :first
    AND number < :end AND outcome = 'waiting' ORDER BY number LIMIT :limit"""
RESULTS = f"""
    SELECT {ITEMS.listed()} FROM bulk_items WHERE city_id = :city AND bulk_id = :bulk AND number > :after {{where}}
    ORDER BY number LIMIT :limit"""
PRUNE = """
    DELETE FROM bulk_actions WHERE city_id = :city AND id IN (
        SELECT id FROM bulk_actions WHERE city_id = :city AND id < :before_id AND state <> 'working'
        AND ended_at < :before ORDER BY id LIMIT :limit)"""
_written = BULKS.writer()
_saved = BULKS.writer("id", *_COUNTED)
_settled = ITEMS.writer("number", *_SETTLED)


class BulkActions:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: BulkAction, runs: Sequence[str]) -> None:
        """With the runs it is about, in their order."""
        self._db.execute(ADD, _written(row) | {"city": self._city})
        self._db.execute_many(
            ADD_ITEM,
            [{"city": self._city, "bulk": row.id, "number": number, "run": run} for number, run in enumerate(runs)],
        )

    def get(self, bulk: str) -> BulkAction | None:
        return self._one(GET.replace("{lock}", ""), bulk)

    def lock(self, bulk: str) -> BulkAction | None:
        return self._one(GET.replace("{lock}", "{for_update}"), bulk)

    def page(self, *, state: BulkState | None, before: str | None, limit: int) -> list[BulkAction]:
        """Newest first; `before` is the last id of the previous page."""
        where = "" if state is None else "AND state = :state"
        params = {"city": self._city, "before": before or "~", "limit": limit}
        params |= {} if state is None else {"state": state.value}
        return [BULKS.read(row) for row in self._db.rows(PAGE.replace("{where}", where), params)]

    def newest_ids(self, *, limit: int) -> list[str]:
        return [row["id"] for row in self._db.rows(LIKE, {"city": self._city, "limit": limit})]

    def save(self, row: BulkAction) -> None:
        """Its state and counts; the caller has locked it."""
        self._db.execute(SAVE, _saved(row) | {"city": self._city})

    def waiting(self, bulk: str, numbers: range, *, limit: int) -> list[BulkItem]:
        """The first of these that were not tried yet."""
        params = {"city": self._city, "bulk": bulk, "first": numbers.start, "end": numbers.stop, "limit": limit}
        return [ITEMS.read(row) for row in self._db.rows(WAITING, params)]

    def settle(self, bulk: str, item: BulkItem) -> bool:
        """Keep what became of it; False if that is on record already."""
        return self._db.execute(SETTLE, _settled(item) | {"city": self._city, "bulk": bulk}) == 1

    def results(self, bulk: str, *, outcome: BulkOutcome | None, after: int | None, limit: int) -> list[BulkItem]:
        """In the order of their numbers, after that of the last one seen."""
        where = "" if outcome is None else "AND outcome = :outcome"
        params = {"city": self._city, "bulk": bulk, "after": -1 if after is None else after, "limit": limit}
        params |= {} if outcome is None else {"outcome": outcome.value}
        return [ITEMS.read(row) for row in self._db.rows(RESULTS.replace("{where}", where), params)]

    def prune(self, *, before: datetime, before_id: str, limit: int) -> int:
        """Delete those that ended before then, with their items."""
        params = {"city": self._city, "before": stamp(before), "before_id": before_id, "limit": limit}
        return self._db.execute(PRUNE, params)

    def _one(self, sql: str, bulk: str) -> BulkAction | None:
        row = self._db.row(sql, {"city": self._city, "id": bulk})
        return None if row is None else BULKS.read(row)
