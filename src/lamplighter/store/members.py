"""The members of a city and their roles."""

from datetime import datetime

from lamplighter.domain.access import Role
from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class MemberRow:
    name: str
    role: Role
    added_at: datetime
    added_by: str


MEMBERS = Table(MemberRow)
ADD = f"""
    INSERT INTO members (city_id, {MEMBERS.listed()}) VALUES (:city, {MEMBERS.given()})
    ON CONFLICT (city_id, name) DO NOTHING"""
ALL = f"SELECT {MEMBERS.listed()} FROM members WHERE city_id = :city ORDER BY name"
LOCK = f"SELECT {MEMBERS.listed()} FROM members WHERE city_id = :city AND name = :name {{for_update}}"
SET_ROLE = "UPDATE members SET role = :role WHERE city_id = :city AND name = :name"
REMOVE = "DELETE FROM members WHERE city_id = :city AND name = :name"
_written = MEMBERS.writer()


class Members:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: MemberRow) -> bool:
        """False if there is one of that name."""
        return self._db.execute(ADD, _written(row) | {"city": self._city}) == 1

    def all(self) -> list[MemberRow]:
        return [MEMBERS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def lock(self, name: str) -> MemberRow | None:
        row = self._db.row(LOCK, {"city": self._city, "name": name})
        return None if row is None else MEMBERS.read(row)

    def set_role(self, name: str, role: Role) -> None:
        self._db.execute(SET_ROLE, {"city": self._city, "name": name, "role": role.value})

    def remove(self, name: str) -> None:
        """Its tokens go with it."""
        self._db.execute(REMOVE, {"city": self._city, "name": name})
