"""The notes of automations: the present version and those before it."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, instant, stamp

ADD = """
    INSERT INTO notes (city_id, automation_id, version, text, written_by, written_at)
    VALUES (:city, :automation, :version, :text, :by, :at) ON CONFLICT DO NOTHING"""
# the primary key serves these
LATEST = """
    SELECT version, text, written_by, written_at FROM notes
    WHERE city_id = :city AND automation_id = :automation ORDER BY version DESC LIMIT 1"""
GET = """
    SELECT version, text, written_by, written_at FROM notes
    WHERE city_id = :city AND automation_id = :automation AND version = :version"""
PRUNE = "DELETE FROM notes WHERE city_id = :city AND automation_id = :automation AND version <= :version"


@dataclass(frozen=True, slots=True)
class Notes:
    automation: str
    version: int
    text: str
    written_by: str
    written_at: datetime


class NotesOf:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: Notes) -> bool:
        """False when somebody else wrote that version."""
        params = {"city": self._city, "automation": row.automation, "version": row.version, "text": row.text,
                  "by": row.written_by, "at": stamp(row.written_at)}  # fmt: skip
        return self._db.execute(ADD, params) == 1

    def latest(self, automation: str) -> Notes | None:
        return self._one(LATEST, {"automation": automation})

    def get(self, automation: str, version: int) -> Notes | None:
        return self._one(GET, {"automation": automation, "version": version})

    def prune(self, automation: str, *, up_to: int) -> int:
        """Delete the versions up to that one."""
        return self._db.execute(PRUNE, {"city": self._city, "automation": automation, "version": up_to})

    def _one(self, sql: str, params: dict[str, object]) -> Notes | None:
        row = self._db.row(sql, params | {"city": self._city})
        if row is None:
            return None
        automation = str(params["automation"])
        return Notes(automation, row["version"], row["text"], row["written_by"], instant(row["written_at"]))
