"""When people last looked at the start page, and the automations that each keeps on top."""

from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db, instant, instant_or_none, stamp, stamp_or_none

# the primary keys serve all of these
GET = "SELECT at, before FROM looks WHERE city_id = :city AND person = :person {for_update}"
PUT = """
    INSERT INTO looks (city_id, person, at, before) VALUES (:city, :person, :at, :before)
    ON CONFLICT (city_id, person) DO UPDATE SET at = excluded.at, before = excluded.before"""
PINS = "SELECT automation FROM pins WHERE city_id = :city AND person = :person ORDER BY automation"
PIN = """
    INSERT INTO pins (city_id, person, automation) VALUES (:city, :person, :automation) ON CONFLICT DO NOTHING"""
UNPIN = "DELETE FROM pins WHERE city_id = :city AND person = :person AND automation = :automation"


@record
class Look:
    """The last time of all, and the last one of the visit before this one."""

    at: datetime
    before: datetime | None


class Looks:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def get(self, person: str) -> Look | None:
        """Locked until the end of the transaction."""
        row = self._db.row(GET, {"city": self._city, "person": person})
        return None if row is None else Look(instant(row["at"]), instant_or_none(row["before"]))

    def put(self, person: str, look: Look) -> None:
        told = {"at": stamp(look.at), "before": stamp_or_none(look.before)}
        self._db.execute(PUT, told | {"city": self._city, "person": person})

    def pins(self, person: str) -> list[str]:
        return [row["automation"] for row in self._db.rows(PINS, {"city": self._city, "person": person})]

    def pin(self, person: str, automation: str) -> None:
        self._db.execute(PIN, {"city": self._city, "person": person, "automation": automation})

    def unpin(self, person: str, automation: str) -> None:
        told = {"city": self._city, "person": person, "automation": automation}
        self._db.execute(UNPIN, told)
