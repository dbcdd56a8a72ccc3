"""The members of the organization of a city, and their roles, which hold in each of its cities."""

from datetime import datetime

from lamplighter.domain.access import Role
from lamplighter.kit.records import record
from lamplighter.store.cities import OF_CITY
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class MemberRow:
    name: str
    role: Role
    added_at: datetime
    added_by: str


MEMBERS = Table(MemberRow)
_OURS = f"organization_id = {OF_CITY}"
ADD = f"""
    INSERT INTO members (organization_id, {MEMBERS.listed()}) VALUES ({OF_CITY}, {MEMBERS.given()})
    ON CONFLICT (organization_id, name) DO NOTHING"""
ALL = f"SELECT {MEMBERS.listed()} FROM members WHERE {_OURS} ORDER BY name"
LOCK = f"SELECT {MEMBERS.listed()} FROM members WHERE {_OURS} AND name = :name {{for_update}}"
SET_ROLE = f"UPDATE members SET role = :role WHERE {_OURS} AND name = :name"
REMOVE = f"DELETE FROM members WHERE {_OURS} AND name = :name"
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
