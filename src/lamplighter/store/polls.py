"""Polls: connections that ask their provider what happened, how far each has read, and when it asks again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record
from lamplighter.store.engine import Db
from lamplighter.store.tables import Table

TOPIC = "polls"


@record
class PollRow:
    """`token` names the city's secret that holds the token; empty for that of `gh`."""

    connection: str
    repo: str
    url: str
    token: str
    state: Mapping[str, Any]
    next_at: datetime
    polled_at: datetime | None = None
    problem: str = ""


POLLS = Table(PollRow)
# the primary key serves all of these
ADD = f"INSERT INTO polls (city_id, {POLLS.listed()}) VALUES (:city, {POLLS.given()})"
ALL = f"SELECT {POLLS.listed()} FROM polls WHERE city_id = :city ORDER BY connection"
GET = f"SELECT {POLLS.listed()} FROM polls WHERE city_id = :city AND connection = :connection"
SAVE = """
    UPDATE polls SET state = :state, next_at = :next_at, polled_at = :polled_at, problem = :problem
    WHERE city_id = :city AND connection = :connection"""
_written = POLLS.writer()
_SAVED = frozenset({"connection", "state", "next_at", "polled_at", "problem"})


class Polls:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: PollRow) -> None:
        self._db.execute(ADD, _written(row) | {"city": self._city})

    def all(self) -> list[PollRow]:
        return [POLLS.read(row) for row in self._db.rows(ALL, {"city": self._city})]

    def get(self, connection: str) -> PollRow | None:
        row = self._db.row(GET, {"city": self._city, "connection": connection})
        return None if row is None else POLLS.read(row)

    def lock(self, connection: str) -> PollRow | None:
        row = self._db.row(GET + " {for_update}", {"city": self._city, "connection": connection})
        return None if row is None else POLLS.read(row)

    def save(self, row: PollRow) -> None:
        kept = {name: value for name, value in _written(row).items() if name in _SAVED}
        self._db.execute(SAVE, kept | {"city": self._city})
