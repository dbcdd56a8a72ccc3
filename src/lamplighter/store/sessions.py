"""Recorded sessions: which were started, for whom, and how they ended; which ones live now, the providers report."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.store.engine import Db, Row, instant, instant_or_none, stamp, stamp_or_none

# A start that is recorded twice, because a controller died in between, is the same start: the second insert is ignored.
ADD = """
    INSERT INTO sessions (city_id, id, name, agent, run_id, provider, node, pid, started_at)
    VALUES (:city, :id, :name, :agent, :run, :provider, :node, :pid, :started)
    ON CONFLICT (city_id, id) DO NOTHING"""
END = """
    UPDATE sessions SET ended_at = :ended, exit_status = :status, end_reason = :reason, output_tail = :tail
    WHERE city_id = :city AND id = :id AND ended_at IS NULL"""
_COLUMNS = """
    SELECT id, name, agent, run_id, provider, node, pid, started_at, ended_at, exit_status, end_reason, output_tail,
        program_session, outcome, summary
    FROM sessions WHERE city_id = :city"""
GET = _COLUMNS + " AND id = :id"
LOCK = GET + " {for_update}"
# served by sessions_by_age, or sessions_of_agent where one is named
LATEST = _COLUMNS + " {} ORDER BY started_at DESC, id DESC LIMIT :limit"
# served by sessions_by_age
IDS = "SELECT id FROM sessions WHERE city_id = :city ORDER BY started_at DESC, id DESC LIMIT :limit"
# The index sessions_of_run serves this. With an ORDER BY, or without the subquery, SQLite reads all sessions of the
# city instead.
OF_RUN = _COLUMNS + " AND id IN (SELECT id FROM sessions WHERE city_id = :city AND run_id = :run)"
# What an agent reported about its run; how its program ended is recorded later.
REPORT = """
    UPDATE sessions SET outcome = :outcome, summary = :summary WHERE city_id = :city AND run_id = :run"""
PRUNE = """
    DELETE FROM sessions WHERE city_id = :city AND id IN (
        SELECT id FROM sessions AS old WHERE city_id = :city AND started_at < :before AND ended_at < :before
        AND (run_id IS NULL OR NOT EXISTS (
            SELECT 1 FROM runs WHERE runs.city_id = old.city_id AND runs.id = old.run_id))
        ORDER BY started_at LIMIT :limit)"""
# the index sessions_of_run serves this; their events go with them
DELETE_OF_RUNS = "DELETE FROM sessions WHERE city_id = :city AND run_id {any:ids}"


@dataclass(frozen=True, slots=True)
class SessionRow:
    id: str
    name: str
    agent: str | None
    run: str | None
    provider: str
    node: str
    pid: int | None
    started_at: datetime
    ended_at: datetime | None = None
    exit_status: int | None = None
    end_reason: str | None = None
    output_tail: str | None = None
    program_session: str | None = None
    outcome: str | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class SessionEnd:
    at: datetime
    reason: str
    exit_status: int | None = None
    output_tail: str | None = None


class Sessions:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def add(self, row: SessionRow) -> None:
        """May be repeated."""
        params = {"city": self._city, "id": row.id, "name": row.name, "agent": row.agent, "run": row.run,
                  "provider": row.provider, "node": row.node, "pid": row.pid,
                  "started": stamp(row.started_at)}  # fmt: skip
        self._db.execute(ADD, params)

    def end(self, session_id: str, end: SessionEnd) -> bool:
        """Record its end; False when the session is unknown or its end was recorded already."""
        params = {"city": self._city, "id": session_id, "ended": stamp_or_none(end.at), "status": end.exit_status,
                  "reason": end.reason, "tail": end.output_tail}  # fmt: skip
        return self._db.execute(END, params) == 1

    def get(self, session_id: str) -> SessionRow | None:
        row = self._db.row(GET, {"city": self._city, "id": session_id})
        return None if row is None else _session(row)

    def lock(self, session_id: str) -> SessionRow | None:
        row = self._db.row(LOCK, {"city": self._city, "id": session_id})
        return None if row is None else _session(row)

    def latest(self, *, agent: str | None = None, limit: int = 50) -> list[SessionRow]:
        """The newest first."""
        where = "" if agent is None else "AND agent = :agent"
        params = {"city": self._city, "limit": limit} | ({} if agent is None else {"agent": agent})
        return [_session(row) for row in self._db.rows(LATEST.format(where), params)]

    def ids(self, *, limit: int) -> list[str]:
        """The newest first."""
        return [row["id"] for row in self._db.rows(IDS, {"city": self._city, "limit": limit})]

    def of_run(self, run: str) -> list[SessionRow]:
        """In order of their start."""
        found = [_session(row) for row in self._db.rows(OF_RUN, {"city": self._city, "run": run})]
        return sorted(found, key=lambda session: (session.started_at, session.id))

    def report(self, run: str, outcome: str, summary: str) -> None:
        self._db.execute(REPORT, {"city": self._city, "run": run, "outcome": outcome, "summary": summary or None})

    def prune(self, *, before: datetime, limit: int) -> int:
        return self._db.execute(PRUNE, {"city": self._city, "before": stamp(before), "limit": limit})

    def delete_of_runs(self, runs: Iterable[str]) -> int:
        return self._db.execute(DELETE_OF_RUNS, {"city": self._city, "ids": json.dumps(sorted(runs))})


def _session(row: Row) -> SessionRow:
    return SessionRow(
        id=row["id"],
        name=row["name"],
        agent=row["agent"],
        run=row["run_id"],
        provider=row["provider"],
        node=row["node"],
        pid=row["pid"],
        started_at=instant(row["started_at"]),
        ended_at=instant_or_none(row["ended_at"]),
        exit_status=row["exit_status"],
        end_reason=row["end_reason"],
        output_tail=row["output_tail"],
        program_session=row["program_session"],
        outcome=row["outcome"],
        summary=row["summary"],
    )
