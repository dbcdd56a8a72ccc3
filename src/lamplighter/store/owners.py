"""Working processes by name. Whether one lives is told by its proof of life, not by this table."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.db import Db, instant, stamp

REGISTER = """
    INSERT INTO owners (id, city_id, kind, host, pid, started_at) VALUES (:id, :city, :kind, :host, :pid, :now)"""
OTHERS = "SELECT id, kind, host, pid, started_at FROM owners WHERE city_id = :city AND id <> :me ORDER BY started_at"
REMOVE = "DELETE FROM owners WHERE city_id = :city AND id = :id"


@dataclass(frozen=True, slots=True)
class Owner:
    id: str
    kind: str
    host: str
    pid: int
    started_at: datetime


class Owners:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def register(self, owner: Owner) -> None:
        self._db.execute(
            REGISTER,
            {
                "id": owner.id,
                "city": self._city,
                "kind": owner.kind,
                "host": owner.host,
                "pid": owner.pid,
                "now": stamp(owner.started_at),
            },
        )

    def others(self, me: str) -> list[Owner]:
        rows = self._db.rows(OTHERS, {"city": self._city, "me": me})
        return [Owner(row["id"], row["kind"], row["host"], row["pid"], instant(row["started_at"])) for row in rows]

    def remove(self, owner: str) -> bool:
        """True for the one who removed it: that one voids what the owner held, in the same transaction."""
        return self._db.execute(REMOVE, {"city": self._city, "id": owner}) == 1
