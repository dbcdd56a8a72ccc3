"""Destinations of notices that said they are gone: nothing is sent there until they are mended."""

from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class Disabled:
    """`target` stands for where it led to: a destination that leads elsewhere by now is not disabled."""

    name: str
    target: str
    why: str
    disabled_at: datetime


DISABLED = Table(Disabled)
PUT = f"""
    INSERT INTO disabled_destinations (city_id, {DISABLED.listed()}) VALUES (:city, {DISABLED.given()})
    ON CONFLICT (city_id, name) DO UPDATE
    SET target = excluded.target, why = excluded.why, disabled_at = excluded.disabled_at"""
# the primary key serves these; there are few
GET = f"SELECT {DISABLED.listed()} FROM disabled_destinations WHERE city_id = :city AND name = :name"
ALL = f"SELECT {DISABLED.listed()} FROM disabled_destinations WHERE city_id = :city ORDER BY name"
DELETE = "DELETE FROM disabled_destinations WHERE city_id = :city AND name = :name"
_written = DISABLED.writer()


class DisabledDestinations:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: Disabled) -> None:
        self._db.execute(PUT, _written(row) | {"city": self._city})

    def get(self, name: str) -> Disabled | None:
        row = self._db.row(GET, {"city": self._city, "name": name})
        return None if row is None else DISABLED.read(row)

    def all(self) -> list[Disabled]:
        return [DISABLED.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def delete(self, name: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "name": name}) == 1
