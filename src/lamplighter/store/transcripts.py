"""Transcripts: what sessions said and did, event by event, and how far their output was read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.store.engine import Db, Params, instant, stamp

# A session's output has one reader: if another one took over meanwhile, the position has moved and no row is changed.
ADVANCE = """
    UPDATE sessions SET output_position = :after, program_session = coalesce(:program, program_session)
    WHERE city_id = :city AND id = :session AND output_position = :before"""
POSITION = "SELECT output_position FROM sessions WHERE city_id = :city AND id = :session"
COUNT = "SELECT coalesce(max(number), 0) AS count FROM session_events WHERE city_id = :city AND session_id = :session"
ADD = """
    INSERT INTO session_events (city_id, session_id, number, at, kind, body)
    VALUES (:city, :session, :number, :at, :kind, :body)"""
AFTER = """
    SELECT number, at, kind, body FROM session_events
    WHERE city_id = :city AND session_id = :session AND number > :after ORDER BY number LIMIT :limit"""


@dataclass(frozen=True, slots=True)
class TranscriptEvent:
    number: int
    at: datetime
    kind: str
    body: Mapping[str, Any]


class Transcripts:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def position(self, session: str) -> int | None:
        """How far its output was read; None for a session that is not on record."""
        row = self._db.row(POSITION, {"city": self._city, "session": session})
        return None if row is None else row["output_position"]

    def advance(self, session: str, *, before: int, after: int, program: str | None) -> bool:
        """False when another reader was faster: do not add the events just read, which are recorded already."""
        params = {"city": self._city, "session": session, "before": before, "after": after, "program": program}
        return self._db.execute(ADVANCE, params) == 1

    def count(self, session: str) -> int:
        row = self._db.row(COUNT, {"city": self._city, "session": session})
        return 0 if row is None else row["count"]

    def add(self, session: str, first: int, events: Sequence[tuple[str, Mapping[str, Any]]], now: datetime) -> None:
        """Add the events, numbered from `first` on; the caller has advanced the position before."""
        params: list[Params] = [
            {"city": self._city, "session": session, "number": first + number, "at": stamp(now), "kind": kind,
             "body": json.dumps(dict(body))}
            for number, (kind, body) in enumerate(events)
        ]  # fmt: skip
        self._db.execute_many(ADD, params)

    def after(self, session: str, number: int = 0, *, limit: int = 10_000) -> list[TranscriptEvent]:
        params = {"city": self._city, "session": session, "after": number, "limit": limit}
        rows = self._db.rows(AFTER, params)
        return [
            TranscriptEvent(row["number"], instant(row["at"]), row["kind"], json.loads(row["body"])) for row in rows
        ]
