"""The city's own row: its id and name, whether it is paused, and which owner controls it."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, instant, instant_or_none, stamp, stamp_or_none

OF_CITY = "(SELECT organization_id FROM cities WHERE id = :city)"
"""The organization of the city that asks, for every statement about members and tokens."""
NAME_CITY = "UPDATE cities SET name = :name WHERE id = :city"
ENSURE_ORGANIZATION = """
    INSERT INTO organizations (id, name, created_at, home_city_id) VALUES (:organization, :name, :now, :city)
    ON CONFLICT (id) DO NOTHING"""
ENSURE_CITY = """
    INSERT INTO cities (id, organization_id, name, created_at) VALUES (:city, :organization, :name, :now)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name"""
FIND = """
    SELECT id, organization_id, name, created_at, controller, controller_since, controller_version, paused_at,
           paused_by, events_scanned FROM cities
    WHERE id = :city"""
LOCK = FIND + " {for_update}"
TAKE_CONTROL = """
    UPDATE cities SET controller = :owner, controller_since = :now, controller_version = controller_version + 1
    WHERE id = :city AND controller_version = :expected"""
DROP_CONTROL = "UPDATE cities SET controller = NULL, controller_since = NULL WHERE id = :city AND controller = :owner"
PAUSE = "UPDATE cities SET paused_at = :at, paused_by = :by WHERE id = :city"
SCANNED = "UPDATE cities SET events_scanned = :seq WHERE id = :city AND events_scanned < :seq"
TRACED = "SELECT traced FROM cities WHERE id = :city"
TRACE = "UPDATE cities SET traced = :seq WHERE id = :city AND coalesce(traced, -1) = :expected"


def organization_of(city: str) -> str:
    """The id of the organization that a city is made with."""
    return f"org_{city.replace('cty_', '')}"


@dataclass(frozen=True, slots=True)
class CityRow:
    id: str
    organization: str
    name: str
    created_at: datetime
    controller: str | None
    """The owner that controls the city now."""
    controller_since: datetime | None
    controller_version: int
    paused_at: datetime | None = None
    paused_by: str | None = None
    events_scanned: int = 0
    """For events up to this seq, the triggers that wait for their types were marked as due."""


class Cities:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def ensure(self, name: str, now: datetime) -> None:
        """Create or rename the city's row. A new city has an organization of its own, of which it is the home."""
        if self._db.execute(NAME_CITY, {"city": self._city, "name": name}):
            return
        params = {"city": self._city, "organization": organization_of(self._city), "name": name, "now": stamp(now)}
        self._db.execute(ENSURE_ORGANIZATION, params)
        self._db.execute(ENSURE_CITY, params)

    def find(self) -> CityRow | None:
        return self._one(FIND)

    def lock(self) -> CityRow | None:
        return self._one(LOCK)

    def take_control(self, owner: str, *, expected: int, now: datetime) -> bool:
        params = {"city": self._city, "owner": owner, "expected": expected, "now": stamp(now)}
        return self._db.execute(TAKE_CONTROL, params) == 1

    def drop_control(self, owner: str) -> None:
        self._db.execute(DROP_CONTROL, {"city": self._city, "owner": owner})

    def pause(self, by: str | None, at: datetime | None) -> None:
        self._db.execute(PAUSE, {"city": self._city, "by": by, "at": stamp_or_none(at)})

    def scanned(self, seq: int) -> None:
        self._db.execute(SCANNED, {"city": self._city, "seq": seq})

    def traced(self) -> int | None:
        """Up to which event the ends of runs were reported as spans; None where nobody reports them."""
        row = self._db.row(TRACED, {"city": self._city})
        return None if row is None else row["traced"]

    def trace(self, seq: int | None, *, expected: int | None) -> bool:
        """False if another process has reported since."""
        params = {"city": self._city, "seq": seq, "expected": -1 if expected is None else expected}
        return self._db.execute(TRACE, params) == 1

    def _one(self, sql: str) -> CityRow | None:
        row = self._db.row(sql, {"city": self._city})
        if row is None:
            return None
        return CityRow(
            id=row["id"],
            organization=row["organization_id"],
            name=row["name"],
            created_at=instant(row["created_at"]),
            controller=row["controller"],
            controller_since=instant_or_none(row["controller_since"]),
            controller_version=row["controller_version"],
            paused_at=instant_or_none(row["paused_at"]),
            paused_by=row["paused_by"],
            events_scanned=row["events_scanned"],
        )
