"""The starts of agents, failed ones too, and what was already reported about them: the stored patrol history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.sessions.crashes import Life, SessionHistory
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.clock import rfc3339
from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp, stamp_or_none

ADD = """
    INSERT INTO agent_starts (city_id, session, id, agent, session_id, started_at, reason, failure, counted, ended_at)
    VALUES (:city, :session, :id, :agent, :session_id, :started, :reason, :failure, :counted, :ended)
    ON CONFLICT (city_id, session, id) DO NOTHING"""
# served by agent_starts_open
END = """
    UPDATE agent_starts SET ended_at = :ended, wished = :wished, exit_status = :status, end_reason = :reason
    WHERE city_id = :city AND session = :session AND ended_at IS NULL"""
CLEAR = "UPDATE agent_starts SET counted = 0, wished = 1 WHERE city_id = :city AND session = :session"
NOTE = """
    INSERT INTO agent_notes (city_id, session, crash_noted, quarantine_noted)
    VALUES (:city, :session, :crash, :quarantine)
    ON CONFLICT (city_id, session) DO UPDATE
    SET crash_noted = excluded.crash_noted, quarantine_noted = excluded.quarantine_noted"""
NOTES = "SELECT session, crash_noted, quarantine_noted FROM agent_notes WHERE city_id = :city"
QUARANTINE = "SELECT quarantine_noted FROM agent_notes WHERE city_id = :city AND session = :session"
QUARANTINES = """
    SELECT session, quarantine_noted FROM agent_notes WHERE city_id = :city AND quarantine_noted > :now
    ORDER BY session"""
_COLUMNS = """
    SELECT session, id, agent, session_id, started_at, reason, failure, counted, ended_at, wished, exit_status,
           end_reason FROM agent_starts WHERE city_id = :city"""
# the indexes agent_starts_by_age and agent_starts_open serve this
SINCE = _COLUMNS + " AND (started_at >= :since OR ended_at IS NULL) ORDER BY session, id"
# the primary key serves this
LATEST = _COLUMNS + " AND session = :session ORDER BY id DESC LIMIT :limit"
PRUNE = """
    DELETE FROM agent_starts WHERE city_id = :city AND id IN (
        SELECT id FROM agent_starts WHERE city_id = :city AND started_at < :before AND ended_at IS NOT NULL
        ORDER BY started_at LIMIT :limit)"""
PRUNE_NOTES = """
    DELETE FROM agent_notes WHERE city_id = :city AND NOT EXISTS (
        SELECT 1 FROM agent_starts WHERE agent_starts.city_id = :city AND agent_starts.session = agent_notes.session)"""


@dataclass(frozen=True, slots=True)
class AgentStart:
    id: str
    session: SessionName
    agent: str
    session_id: str
    started_at: datetime
    reason: str
    failure: str | None = None
    counted: bool = True
    ended_at: datetime | None = None
    wished: bool = False
    exit_status: int | None = None
    end_reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id or None,
            "started_at": rfc3339(self.started_at),
            "reason": self.reason,
            "failure": self.failure,
            "counted": self.counted,
            "ended_at": None if self.ended_at is None else rfc3339(self.ended_at),
            "exit_status": self.exit_status,
            "end_reason": self.end_reason,
        }


@dataclass(frozen=True, slots=True)
class Remembered:
    """The stored histories of all agent sessions, and the session id of each life that has not ended."""

    histories: dict[SessionName, SessionHistory]
    open_ids: dict[SessionName, str]


class Agents:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, start: AgentStart) -> None:
        """May be repeated."""
        params = {"city": self._city, "session": start.session, "id": start.id, "agent": start.agent,
                  "session_id": start.session_id, "started": stamp(start.started_at), "reason": start.reason,
                  "failure": start.failure, "counted": int(start.counted),
                  "ended": stamp_or_none(start.ended_at)}  # fmt: skip
        self._db.execute(ADD, params)

    def end(self, session: SessionName, at: datetime, *, wished: bool, exit_status: int | None, reason: str) -> None:
        """Record the end of the session's open life; does nothing if it has none."""
        params = {"city": self._city, "session": session, "ended": stamp(at), "wished": int(wished),
                  "status": exit_status, "reason": reason}  # fmt: skip
        self._db.execute(END, params)

    def note(self, session: SessionName, history: SessionHistory) -> None:
        params = {"city": self._city, "session": session, "crash": history.crash_noted,
                  "quarantine": stamp_or_none(history.quarantine_noted)}  # fmt: skip
        self._db.execute(NOTE, params)

    def clear(self, session: SessionName) -> None:
        """Count no past start as a crash any more, and forget which crash and quarantine were reported."""
        self._db.execute(CLEAR, {"city": self._city, "session": session})
        self.note(session, SessionHistory())

    def remembered(self, since: datetime) -> Remembered:
        lives: dict[SessionName, list[Life]] = {}
        open_ids: dict[SessionName, str] = {}
        for row in self._db.rows(SINCE, {"city": self._city, "since": stamp(since)}):
            start = _start(row)
            lives.setdefault(start.session, []).append(
                Life(
                    start.started_at,
                    start.ended_at,
                    start.wished,
                    start.counted,
                    start.failure or start.end_reason or "",
                )
            )
            if start.ended_at is None:
                open_ids[start.session] = start.session_id
        notes = {SessionName(row["session"]): row for row in self._db.rows(NOTES, {"city": self._city})}
        histories = {name: _history(lives.get(name, []), notes.get(name)) for name in lives.keys() | notes.keys()}
        return Remembered(histories, open_ids)

    def quarantine(self, session: SessionName) -> datetime | None:
        """The end of the quarantine that was last told; None if there was none, or a person lifted it."""
        row = self._db.row(QUARANTINE, {"city": self._city, "session": session})
        return None if row is None else instant_or_none(row["quarantine_noted"])

    def quarantines(self, now: datetime) -> list[tuple[SessionName, datetime]]:
        """The sessions that are quarantined, each with the end of it."""
        rows = self._db.rows(QUARANTINES, {"city": self._city, "now": stamp(now)})
        return [(SessionName(row["session"]), instant(row["quarantine_noted"])) for row in rows]

    def latest(self, session: SessionName, *, limit: int = 10) -> list[AgentStart]:
        """The newest first."""
        return [_start(row) for row in self._db.rows(LATEST, {"city": self._city, "session": session, "limit": limit})]

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete old starts, and what was noted about sessions that have none left; returns how many starts."""
        pruned = self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})
        if pruned:
            self._db.execute(PRUNE_NOTES, {"city": self._city})
        return pruned


def _history(lives: list[Life], notes: Row | None) -> SessionHistory:
    if notes is None:
        return SessionHistory(tuple(lives))
    return SessionHistory(tuple(lives), notes["crash_noted"], instant_or_none(notes["quarantine_noted"]))


def _start(row: Row) -> AgentStart:
    return AgentStart(
        id=row["id"],
        session=SessionName(row["session"]),
        agent=row["agent"],
        session_id=row["session_id"],
        started_at=instant(row["started_at"]),
        reason=row["reason"],
        failure=row["failure"],
        counted=bool(row["counted"]),
        ended_at=instant_or_none(row["ended_at"]),
        wished=bool(row["wished"]),
        exit_status=row["exit_status"],
        end_reason=row["end_reason"],
    )
