"""Filters of runs that people keep under a name."""

from datetime import datetime

from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table


@record
class SavedView:
    owner: str
    name: str
    query: str
    is_shared: bool
    saved_at: datetime
    is_first: bool = False


VIEWS = Table(SavedView)
PUT = f"""
    INSERT INTO saved_views (city_id, {VIEWS.listed()}) VALUES (:city, {VIEWS.given()})
    ON CONFLICT (city_id, owner, name) DO UPDATE
    SET query = excluded.query, is_shared = excluded.is_shared, saved_at = excluded.saved_at,
        is_first = excluded.is_first"""
NOT_FIRST = "UPDATE saved_views SET is_first = 0 WHERE city_id = :city AND owner = :owner AND name <> :name"
# the primary key serves these; there are few
SHOWN_TO = f"""
    SELECT {VIEWS.listed()} FROM saved_views WHERE city_id = :city AND (owner = :owner OR is_shared = 1)
    ORDER BY owner, name"""
COUNT = "SELECT COUNT(*) AS number FROM saved_views WHERE city_id = :city AND owner = :owner AND name <> :name"
DELETE = "DELETE FROM saved_views WHERE city_id = :city AND owner = :owner AND name = :name"
_written = VIEWS.writer()


class SavedViews:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def put(self, row: SavedView) -> None:
        """In place of the owner's view of that name, if there is one."""
        self._db.execute(PUT, _written(row) | {"city": self._city})
        if row.is_first:
            self._db.execute(NOT_FIRST, {"city": self._city, "owner": row.owner, "name": row.name})

    def shown_to(self, owner: str) -> list[SavedView]:
        """Their own, and those that others share."""
        return [VIEWS.read(row) for row in self._db.rows(SHOWN_TO, {"city": self._city, "owner": owner})]

    def others_of(self, owner: str, name: str) -> int:
        """How many the owner has beside the one of that name."""
        row = self._db.row(COUNT, {"city": self._city, "owner": owner, "name": name})
        return 0 if row is None else row["number"]

    def delete(self, owner: str, name: str) -> bool:
        return self._db.execute(DELETE, {"city": self._city, "owner": owner, "name": name}) == 1
