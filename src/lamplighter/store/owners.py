"""Working processes by name; whether one is alive is decided by its proof of life, not by this table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lamplighter.store.engine import Db, Row, instant, stamp

TOPIC = "owners"
_COLUMNS = "id, kind, host, pid, started_at, node, rigs"
REGISTER = """
    INSERT INTO owners (id, city_id, kind, host, pid, started_at, node, rigs)
    VALUES (:id, :city, :kind, :host, :pid, :now, :node, :rigs)"""
ALL = f"SELECT {_COLUMNS} FROM owners WHERE city_id = :city ORDER BY started_at"
OTHERS = f"SELECT {_COLUMNS} FROM owners WHERE city_id = :city AND id <> :me ORDER BY started_at"
ON_NODE = f"SELECT {_COLUMNS} FROM owners WHERE city_id = :city AND node = :node ORDER BY id"
PLACE = "UPDATE owners SET node = :node, rigs = :rigs WHERE city_id = :city AND id = :id"
REMOVE = "DELETE FROM owners WHERE city_id = :city AND id = :id"
# The indexes runs_leased and outbox_claimed serve these: few rows at any time.
STALE_CLAIMS = """
    SELECT DISTINCT lease_owner AS id FROM runs WHERE city_id = :city AND lease_owner IS NOT NULL
        AND lease_owner NOT IN (SELECT id FROM owners WHERE city_id = :city)
    UNION
    SELECT DISTINCT claimed_by AS id FROM outbox WHERE city_id = :city AND state = 'claimed'
        AND claimed_by NOT IN (SELECT id FROM owners WHERE city_id = :city)"""


@dataclass(frozen=True, slots=True)
class Owner:
    id: str
    kind: str
    host: str
    pid: int
    started_at: datetime
    node: str | None = None
    rigs: Mapping[str, str] = field(default_factory=dict)
    """The path of each rig that the process holds."""


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
                "node": owner.node,
                "rigs": json.dumps(dict(owner.rigs)),
            },
        )

    def all(self) -> list[Owner]:
        return [_owner(row) for row in self._db.rows(ALL, {"city": self._city})]

    def others(self, me: str) -> list[Owner]:
        return [_owner(row) for row in self._db.rows(OTHERS, {"city": self._city, "me": me})]

    def on_node(self, node: str) -> list[Owner]:
        return [_owner(row) for row in self._db.rows(ON_NODE, {"city": self._city, "node": node})]

    def place(self, owner: str, node: str, rigs: Mapping[str, str]) -> None:
        """Record on which node the process works, and which rigs it holds there."""
        params = {"city": self._city, "id": owner, "node": node, "rigs": json.dumps(dict(rigs))}
        self._db.execute(PLACE, params)

    def remove(self, owner: str) -> bool:
        """True if this call removed it: the caller then voids what the owner held, in the same transaction."""
        return self._db.execute(REMOVE, {"city": self._city, "id": owner}) == 1

    def stale_claims(self) -> list[str]:
        """Names that hold a lease or claim but are not registered: they wrote it after they were expired."""
        return sorted(row["id"] for row in self._db.rows(STALE_CLAIMS, {"city": self._city}))


def _owner(row: Row) -> Owner:
    started = instant(row["started_at"])
    return Owner(row["id"], row["kind"], row["host"], row["pid"], started, row["node"], json.loads(row["rigs"]))
