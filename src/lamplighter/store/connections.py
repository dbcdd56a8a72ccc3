"""Connections: where deliveries come in, and how they are read."""

import json
from collections.abc import Iterable
from datetime import datetime

from lamplighter.domain.delivery_fields import Provider
from lamplighter.kit.records import record
from lamplighter.store.engine import Db, stamp
from lamplighter.store.tables import Table


@record
class ConnectionRow:
    """`previous_until` is how long the secret before the present one still holds."""

    name: str
    provider: Provider
    title: str
    authors: tuple[str, ...]
    own: tuple[str, ...]
    fields: tuple[str, ...]
    created_at: datetime
    created_by: str
    rotated_at: datetime | None = None
    previous_until: datetime | None = None
    last_at: datetime | None = None

    @property
    def version(self) -> "Version":
        return Version(self.name, self.created_at, self.rotated_at, self.last_at)


@record
class Version:
    """What changes when a connection is rotated, or made anew under its name, and when something came last."""

    name: str
    created_at: datetime
    rotated_at: datetime | None
    last_at: datetime | None

    def is_same(self, other: "Version | None") -> bool:
        """Whether what proves a delivery to the one proves it to the other."""
        return other is not None and (self.created_at, self.rotated_at) == (other.created_at, other.rotated_at)


CONNECTIONS, VERSIONS = Table(ConnectionRow), Table(Version)
# the primary key serves all of these
ADD = f"""
    INSERT INTO connections (city_id, {CONNECTIONS.listed()}) VALUES (:city, {CONNECTIONS.given()})
    ON CONFLICT DO NOTHING"""
ALL = f"SELECT {CONNECTIONS.listed()} FROM connections WHERE city_id = :city ORDER BY name"
GET = f"SELECT {CONNECTIONS.listed()} FROM connections WHERE city_id = :city AND name = :name"
SOME = f"SELECT {CONNECTIONS.listed()} FROM connections WHERE city_id = :city AND name {{any:names}}"
NOW_KNOWN = f"SELECT {VERSIONS.listed()} FROM connections WHERE city_id = :city AND name {{any:names}}"
ROTATED = """
    UPDATE connections SET rotated_at = :now, previous_until = :until WHERE city_id = :city AND name = :name"""
CAME = """
    UPDATE connections SET last_at = :now
    WHERE city_id = :city AND name = :name AND (last_at IS NULL OR last_at < :minute)"""
DELETE = "DELETE FROM connections WHERE city_id = :city AND name = :name"
A_MINUTE = 60_000_000
_written = CONNECTIONS.writer()


class Connections:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: ConnectionRow) -> bool:
        """False if the name is taken."""
        return self._db.execute(ADD, _written(row) | {"city": self._city}) == 1

    def all(self) -> list[ConnectionRow]:
        return [CONNECTIONS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def get(self, name: str) -> ConnectionRow | None:
        row = self._db.row(GET, {"city": self._city, "name": name})
        return None if row is None else CONNECTIONS.read(row)

    def some(self, names: Iterable[str]) -> dict[str, ConnectionRow]:
        rows = self._db.rows(SOME, {"city": self._city, "names": json.dumps(sorted(names))})
        return {row["name"]: CONNECTIONS.read(row) for row in rows}

    def versions(self, names: Iterable[str]) -> dict[str, Version]:
        rows = self._db.rows(NOW_KNOWN, {"city": self._city, "names": json.dumps(sorted(names))})
        return {row["name"]: VERSIONS.read(row) for row in rows}

    def lock(self, name: str) -> ConnectionRow | None:
        row = self._db.row(GET + " {for_update}", {"city": self._city, "name": name})
        return None if row is None else CONNECTIONS.read(row)

    def rotated(self, name: str, now: datetime, until: datetime) -> None:
        params = {"city": self._city, "name": name, "now": stamp(now), "until": stamp(until)}
        self._db.execute(ROTATED, params)

    def came(self, row: Version, now: datetime) -> None:
        """Note that something came, to the minute, so that many deliveries do not wait for one row."""
        at = stamp(now)
        if row.last_at is None or stamp(row.last_at) < at - A_MINUTE:
            self._db.execute(CAME, {"city": self._city, "name": row.name, "now": at, "minute": at - A_MINUTE})

    def delete(self, name: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "name": name}) == 1
