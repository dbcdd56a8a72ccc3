"""Notices: what people are told, one for each item or run, destination and occasion."""

from collections.abc import Iterable
from datetime import datetime

from lamplighter.domain.inbox.notices import Notice
from lamplighter.store.engine import Db, instant_or_none
from lamplighter.store.tables import Table

NOTICES = Table(Notice)
_COLUMNS = NOTICES.listed()
CHANGING = ("state", "attempts", "last_error", "sent_at", "doubts", "answer")
# the index notices_once serves this
ADD = f"""
    INSERT INTO notices (city_id, {_COLUMNS}) VALUES (:city, {NOTICES.given()})
    ON CONFLICT (city_id, about, destination, what) DO NOTHING"""
SAVE = f"UPDATE notices SET {NOTICES.assigned(*CHANGING)} WHERE city_id = :city AND id = :id"
GET = f"SELECT {_COLUMNS} FROM notices WHERE city_id = :city AND id = :id"
# the index notices_once serves this
OF = f"SELECT {_COLUMNS} FROM notices WHERE city_id = :city AND about = :about ORDER BY id"
# the index notices_held serves this
HELD = f"SELECT {_COLUMNS} FROM notices WHERE city_id = :city AND state = 'held' ORDER BY id LIMIT :limit"
# the primary key serves this
PAGE = f"SELECT {_COLUMNS} FROM notices WHERE city_id = :city AND id < :before ORDER BY id DESC LIMIT :limit"
# the index notices_of_destination serves these
LATEST = f"""
    SELECT {_COLUMNS} FROM notices WHERE city_id = :city AND destination = :destination AND state <> 'dropped'
    ORDER BY id DESC LIMIT 1"""
LAST_SENT = """
    SELECT sent_at FROM notices WHERE city_id = :city AND destination = :destination AND sent_at IS NOT NULL
    ORDER BY id DESC LIMIT 1"""
LAST_ANSWER = """
    SELECT answer FROM notices WHERE city_id = :city AND destination = :destination AND answer <> ''
    ORDER BY id DESC LIMIT 1"""
# Ids are in order of time, so the primary key finds the oldest.
PRUNE = """
    DELETE FROM notices WHERE city_id = :city AND id IN (
        SELECT id FROM notices WHERE city_id = :city AND id < :before_id AND state IN ('sent', 'failed', 'dropped')
        ORDER BY id LIMIT :limit)"""

_written = NOTICES.writer()
_saved = NOTICES.writer("id", *CHANGING)


class Notices:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, notice: Notice) -> bool:
        """False if that destination was told of this occasion already."""
        return self._db.execute(ADD, _written(notice) | {"city": self._city}) == 1

    def save(self, notice: Notice) -> None:
        self._db.execute(SAVE, _saved(notice) | {"city": self._city})

    def get(self, notice: str) -> Notice | None:
        found = self._many(GET, {"id": notice})
        return found[0] if found else None

    def of(self, about: str) -> list[Notice]:
        return self._many(OF, {"about": about})

    def held(self, *, limit: int) -> list[Notice]:
        """Those that wait for the end of the quiet hours, oldest first."""
        return self._many(HELD, {"limit": limit})

    def page(self, *, before: str | None = None, limit: int = 50) -> list[Notice]:
        """Newest first."""
        return self._many(PAGE, {"before": before or "~", "limit": limit})

    def latest(self, destinations: Iterable[str]) -> dict[str, Notice]:
        """The newest notice to each of these."""
        found = {name: self._many(LATEST, {"destination": name}) for name in destinations}
        return {name: notices[0] for name, notices in found.items() if notices}

    def last_sent(self, destination: str) -> datetime | None:
        row = self._db.row(LAST_SENT, {"city": self._city, "destination": destination})
        return None if row is None else instant_or_none(row["sent_at"])

    def last_answer(self, destination: str) -> str:
        """What the destination said to the newest notice that it took."""
        row = self._db.row(LAST_ANSWER, {"city": self._city, "destination": destination})
        return "" if row is None else str(row["answer"])

    def prune(self, *, before_id: str, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before_id": before_id, "limit": limit})

    def _many(self, sql: str, params: dict[str, object]) -> list[Notice]:
        return [NOTICES.read(row) for row in self._db.rows(sql, params | {"city": self._city})]
