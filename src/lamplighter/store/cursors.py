"""The cursors of automations: up to where their runs have seen what they look at."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, instant, stamp

# the primary key serves these
GET = """
    SELECT kind, value, version, written_by, written_at FROM cursors
    WHERE city_id = :city AND automation_id = :automation"""
ADD = """
    INSERT INTO cursors (city_id, automation_id, kind, value, version, written_by, written_at)
    VALUES (:city, :automation, :kind, :value, :version, :by, :at) ON CONFLICT DO NOTHING"""
MOVE = """
    UPDATE cursors SET kind = :kind, value = :value, version = :version, written_by = :by, written_at = :at
    WHERE city_id = :city AND automation_id = :automation AND version = :before"""


@dataclass(frozen=True, slots=True)
class Cursor:
    automation: str
    kind: str
    value: str
    version: int
    written_by: str
    written_at: datetime


class Cursors:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def get(self, automation: str) -> Cursor | None:
        row = self._db.row(GET, {"city": self._city, "automation": automation})
        if row is None:
            return None
        at = instant(row["written_at"])
        return Cursor(automation, row["kind"], row["value"], row["version"], row["written_by"], at)

    def put(self, row: Cursor) -> bool:
        """Write it in place of the version before it; False when somebody else was faster."""
        params = {
            "city": self._city, "automation": row.automation, "kind": row.kind, "value": row.value,
            "version": row.version, "by": row.written_by, "at": stamp(row.written_at),
        }  # fmt: skip
        if row.version == 1:
            return self._db.execute(ADD, params) == 1
        return self._db.execute(MOVE, params | {"before": row.version - 1}) == 1
