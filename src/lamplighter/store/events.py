"""The event log: append, read after a cursor, number, prune.

It guarantees that a reader that has seen seq n never finds a new event below n later. On SQLite the single writer
numbers rows as they are written. On PostgreSQL transactions commit out of order, so rows are appended without a number,
and committed rows are numbered in batches right after, under a short lock; readers see numbered rows only.
"""

import json
from datetime import datetime

from lamplighter.domain.events import TOPIC, Event, EventFilter, NewEvent, type_prefix
from lamplighter.store.engine import Db, Row, Write, as_json, instant, stamp

APPEND = Write(
    """
    INSERT INTO events (city_id, type, at, actor, subject, message, payload, run_id)
    SELECT :city, :type, :at, :actor, :subject, :message, :payload, :run {each}""",
    whole="at",
    json="payload",
)

_COLUMNS = "seq, type, at, actor, subject, message, payload, run_id"

# index: events_of_city (city_id, seq) on PostgreSQL, the primary key on SQLite
AFTER = f"""
    SELECT {_COLUMNS} FROM events
    WHERE city_id = :city AND seq > :after ORDER BY seq LIMIT :limit"""
# the index events_of_type (city_id, type, seq) serves this
AFTER_OF_TYPE = f"""
    SELECT {_COLUMNS} FROM events
    WHERE city_id = :city AND type = :type AND seq > :after ORDER BY seq LIMIT :limit"""
# index: as AFTER; the newest first
LATEST = f"""
    SELECT {_COLUMNS} FROM events
    WHERE city_id = :city AND seq > :after {{}} ORDER BY seq DESC LIMIT :limit"""
# index: as AFTER; the types of the new events, with the highest seq of each
TYPES_AFTER = """
    SELECT type, max(seq) AS seq FROM (
        SELECT type, seq FROM events WHERE city_id = :city AND seq > :after ORDER BY seq LIMIT :limit) AS new
    GROUP BY type"""
# index: as AFTER, from its end; max(seq) would read all of the city's events on SQLite
HEAD = "SELECT seq AS head FROM events WHERE city_id = :city AND seq > 0 ORDER BY seq DESC LIMIT 1"
# The newest event always stays: SQLite numbers on from the highest existing row, and no number may be given twice.
PRUNE = """
    DELETE FROM events WHERE city_id = :city AND seq IN (
        SELECT seq FROM events WHERE city_id = :city AND at < :before AND seq <= :spared
        AND seq < (SELECT seq FROM events WHERE city_id = :city AND seq > 0 ORDER BY seq DESC LIMIT 1)
        ORDER BY seq LIMIT :limit)"""


class Events:
    def __init__(self, db: Db, city: str, wakes: set[str]) -> None:
        self._db = db
        self._city = city
        self._wakes = wakes

    def append(self, event: NewEvent) -> None:
        self._wakes.add(TOPIC)
        self._db.write(
            APPEND,
            self._city,
            {
                "type": event.type,
                "at": stamp(event.at),
                "actor": event.actor,
                "subject": event.subject,
                "message": event.message,
                "payload": as_json(event.payload),
                "run": event.run,
            },
        )

    def after(self, cursor: int, *, limit: int = 500) -> list[Event]:
        """The next events above `cursor`, oldest first."""
        return [_event(row) for row in self._db.rows(AFTER, {"city": self._city, "after": cursor, "limit": limit})]

    def after_of_type(self, event_type: str, cursor: int, *, limit: int = 500) -> list[Event]:
        params = {"city": self._city, "type": event_type, "after": cursor, "limit": limit}
        return [_event(row) for row in self._db.rows(AFTER_OF_TYPE, params)]

    def types_after(self, cursor: int, *, limit: int) -> tuple[set[str], int]:
        """The types of the next events above `cursor`, and the seq of the last of them."""
        rows = self._db.rows(TYPES_AFTER, {"city": self._city, "after": cursor, "limit": limit})
        return {row["type"] for row in rows}, max((row["seq"] for row in rows), default=cursor)

    def latest(self, wanted: EventFilter, *, limit: int) -> list[Event]:
        """The newest events that pass, oldest of them first."""
        where, params = _conditions(wanted)
        rows = self._db.rows(LATEST.format(where), params | {"city": self._city, "after": wanted.after, "limit": limit})
        return [_event(row) for row in reversed(rows)]

    def next_matching(self, wanted: EventFilter, *, limit: int) -> list[Event]:
        """The oldest events above `wanted.after` that pass: the next page for a reader that follows with a filter."""
        where, params = _conditions(wanted)
        sql = LATEST.format(where).replace("DESC", "ASC")
        rows = self._db.rows(sql, params | {"city": self._city, "after": wanted.after, "limit": limit})
        return [_event(row) for row in rows]

    def head(self) -> int:
        """The seq of the newest event, or 0."""
        row = self._db.row(HEAD, {"city": self._city})
        return 0 if row is None or row["head"] is None else row["head"]

    def prune(self, *, before: datetime, spared_after: int, limit: int) -> int:
        """Delete up to `limit` of the oldest events made before `before`, none above `spared_after`."""
        return self._db.execute(
            PRUNE, {"city": self._city, "before": stamp(before), "spared": spared_after, "limit": limit}
        )


def _conditions(wanted: EventFilter) -> tuple[str, dict[str, object]]:
    clauses: list[str] = []
    params: dict[str, object] = {}
    if wanted.type is not None:
        prefix = type_prefix(wanted.type)
        if prefix is None:
            clauses.append("AND type = :type")
            params["type"] = wanted.type
        else:
            # A range instead of LIKE: it uses the index on both databases and needs no escaping.
            clauses.append("AND type >= :type AND type < :type_end")
            params |= {"type": prefix, "type_end": prefix[:-1] + chr(ord(prefix[-1]) + 1)}
    if wanted.actor is not None:
        clauses.append("AND actor = :actor")
        params["actor"] = wanted.actor
    if wanted.subject is not None:
        clauses.append("AND subject = :subject")
        params["subject"] = wanted.subject
    if wanted.since is not None:
        clauses.append("AND at >= :since")
        params["since"] = stamp(wanted.since)
    return " ".join(clauses), params


def _event(row: Row) -> Event:
    payload = row["payload"]
    return Event(
        seq=row["seq"],
        type=row["type"],
        at=instant(row["at"]),
        actor=row["actor"],
        subject=row["subject"],
        message=row["message"],
        payload=None if payload is None else json.loads(payload),
        run=row["run_id"],
    )
