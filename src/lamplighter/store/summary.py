"""The few numbers that a status shows; a command that only shows them loads no other repository."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Protocol

from lamplighter.kit.clock import rfc3339
from lamplighter.store.engine import Params, Row, instant, stamp

ENDED_STATES = ("succeeded", "failed", "needs_human", "timed_out", "canceled", "skipped")
ACTIVE_STATES = "state IN ('queued', 'enriching', 'ready', 'running')"
CITY = "SELECT name, paused_at FROM cities WHERE id = :city"
RUNS = "SELECT state, count(*) AS count FROM runs WHERE city_id = :city AND id >= :since GROUP BY state"
# the index runs_by_state serves this: a range of one state, read no further than `most`
IN_STATE_AT_MOST = """
    SELECT count(*) AS count FROM (
        SELECT 1 FROM runs WHERE city_id = :city AND state = '{state}' AND id >= :since LIMIT :most) AS found"""
ACTIVE_RUNS = f"SELECT state, count(*) AS count FROM runs WHERE city_id = :city AND {ACTIVE_STATES} GROUP BY state"
# the index runs_by_state serves this: questions that somebody answered, so that another run goes on
ANSWERED = """
    SELECT count(*) AS count FROM runs
    WHERE city_id = :city AND state = 'needs_human' AND id >= :since AND continued_by IS NOT NULL"""
# the index runs_by_state serves these; the state stands in the text, because on PostgreSQL the index leaves some out
IN_STATE = """
    SELECT id, automation, state, reason, error, created_at, started_at, ended_at FROM runs
    WHERE city_id = :city AND state = '{state}' AND id >= :since AND (fingerprint IS NULL OR fingerprint <> '')
    ORDER BY id DESC LIMIT :limit"""
# the index triggers_due serves this
UPCOMING = """
    SELECT automations.scoped_name, triggers.id, triggers.next_due_at FROM triggers
    JOIN automations ON automations.city_id = triggers.city_id AND automations.id = triggers.automation_id
    WHERE triggers.city_id = :city AND triggers.armed = 1 AND triggers.held_by IS NULL
        AND triggers.next_due_at IS NOT NULL AND triggers.event_key IS NULL AND automations.suspended = 0
    ORDER BY triggers.next_due_at LIMIT :limit"""
# the index inbox_open serves this
ATTENTION = """
    SELECT count(*) AS count FROM inbox_items WHERE city_id = :city AND state = 'open'
        AND (snoozed_until IS NULL OR snoozed_until <= :now OR count >= snoozed_count)"""
BEADS = "SELECT status, count(*) AS count FROM beads WHERE city_id = :city GROUP BY status"
# index: events_of_city (city_id, seq) on PostgreSQL, the primary key on SQLite
LAST_EVENT = "SELECT type, seq FROM events WHERE city_id = :city AND seq > 0 ORDER BY seq DESC LIMIT 1"
# primary keys and automations' own index serve this
ANY_HISTORY = """
    SELECT EXISTS (SELECT 1 FROM runs WHERE city_id = :city) OR EXISTS (SELECT 1 FROM beads WHERE city_id = :city)
        OR EXISTS (SELECT 1 FROM automations WHERE city_id = :city AND source <> 'file') AS found"""
ANY_OWNER = "SELECT 1 AS found FROM owners WHERE city_id = :city LIMIT 1"
# the index agent_starts_by_age serves this
COUNTED_STARTS = """
    SELECT session, count(*) AS count, max(started_at) AS started, max(ended_at) AS ended FROM agent_starts
    WHERE city_id = :city AND started_at > :since AND counted = 1 GROUP BY session"""


NODES = "SELECT name, place, rigs, state, since FROM nodes WHERE city_id = :city ORDER BY name"


LOGINS = """
    SELECT preset, home, node, state, since, model, until, detail FROM logins
    WHERE city_id = :city AND state <> 'works' ORDER BY since, preset, home"""


class NodeRow(NamedTuple):
    name: str
    place: str
    rigs: list[str]
    state: str
    since: datetime


class RunRow(NamedTuple):
    """The little of a run that a status shows; `at` is when it ended, else when it started, else when it was made."""

    id: str
    automation: str
    state: str
    reason: str
    at: datetime
    error: str = ""


class Reads(Protocol):
    """The part of a connection that reading needs."""

    def rows(self, sql: str, params: Params) -> list[Row]: ...

    def row(self, sql: str, params: Params) -> Row | None: ...


def _last_time(row: Row) -> int:
    found: int = next(row[key] for key in ("ended_at", "started_at", "created_at") if row[key] is not None)
    return found


class Summary:
    def __init__(self, db: Reads, city: str) -> None:
        self._db = db
        self._city = city

    def city(self) -> tuple[str, bool] | None:
        """The city's name, and whether it is paused; None for a city that was never started."""
        row = self._db.row(CITY, {"city": self._city})
        return None if row is None else (row["name"], row["paused_at"] is not None)

    def runs(self, *, since: str, most: int | None = None) -> dict[str, int]:
        """How many runs from the id `since` on are in each state; active runs are counted whatever their age.

        A run that needed a person and was answered is in none: nobody has to do anything about it any more. Of each
        state at most `most` are counted, so that it takes no longer in a city with many runs.
        """
        active = self._db.rows(ACTIVE_RUNS, {"city": self._city})
        row = self._db.row(ANSWERED, {"city": self._city, "since": since})
        answered = 0 if row is None else row["count"]
        if most is None:
            rows = self._db.rows(RUNS, {"city": self._city, "since": since})
            found = {row["state"]: row["count"] for row in (*rows, *active)}
        else:
            told = {"city": self._city, "since": since, "most": most}
            more = {**told, "most": most + answered}  # as many as `most` are left of them
            counted = {
                one: self._db.row(IN_STATE_AT_MOST.format(state=one), more if one == "needs_human" else told)
                for one in ENDED_STATES
            }
            found = {one: row["count"] for one, row in counted.items() if row is not None}
            found |= {row["state"]: row["count"] for row in active}
        found["needs_human"] = max(found.get("needs_human", 0) - answered, 0)
        return {state: count for state, count in found.items() if count}

    def attention(self, now: datetime) -> int:
        """How many inbox items are open and not snoozed."""
        row = self._db.row(ATTENTION, {"city": self._city, "now": stamp(now)})
        return 0 if row is None else int(row["count"])

    def active_runs(self) -> dict[str, int]:
        """How many runs are under way, by state; those of an index that has no others."""
        found = {row["state"]: row["count"] for row in self._db.rows(ACTIVE_RUNS, {"city": self._city})}
        return {state: found.get(state, 0) for state in ("queued", "enriching", "ready", "running")}

    def latest_runs(self, states: Iterable[str], *, since: str, limit: int) -> list[RunRow]:
        """The newest runs in these states from the id `since` on, newest first."""
        params = {"city": self._city, "since": since, "limit": limit}
        rows = [row for state in states for row in self._db.rows(IN_STATE.format(state=state), params)]
        found = [
            RunRow(
                row["id"],
                row["automation"],
                row["state"],
                row["reason"] or "",
                instant(_last_time(row)),
                row["error"] or "",
            )
            for row in rows
        ]
        return sorted(found, reverse=True)[:limit]

    def upcoming(self, *, limit: int) -> list[tuple[str, str, datetime]]:
        """The next due times, by scoped name and trigger, soonest first; without event triggers."""
        rows = self._db.rows(UPCOMING, {"city": self._city, "limit": limit})
        return [(row["scoped_name"], row["id"], instant(row["next_due_at"])) for row in rows]

    def beads(self) -> dict[str, int]:
        """How many beads have each status."""
        return {row["status"]: row["count"] for row in self._db.rows(BEADS, {"city": self._city})}

    def last_event(self) -> tuple[str, int] | None:
        """The newest event's type and seq."""
        row = self._db.row(LAST_EVENT, {"city": self._city})
        return None if row is None else (row["type"], row["seq"])

    def nodes(self) -> list[NodeRow]:
        return [
            NodeRow(row["name"], row["place"], json.loads(row["rigs"]), row["state"], instant(row["since"]))
            for row in self._db.rows(NODES, {"city": self._city})
        ]

    def logins(self) -> list[dict[str, object]]:
        """The logins that keep runs waiting, the longest first."""
        return [
            {
                "preset": row["preset"],
                "home": row["home"],
                "node": row["node"],
                "state": row["state"],
                "since": rfc3339(instant(row["since"])),
                "model": row["model"] or None,
                "until": None if row["until"] is None else rfc3339(instant(row["until"])),
                "detail": row["detail"],
            }
            for row in self._db.rows(LOGINS, {"city": self._city})
        ]

    def has_history(self) -> bool:
        """Whether there are runs, beads or automations that are in no file."""
        row = self._db.row(ANY_HISTORY, {"city": self._city})
        return row is not None and bool(row["found"])

    def has_owners(self) -> bool:
        """Whether a process is registered as working for the city, be it alive or not."""
        return self._db.row(ANY_OWNER, {"city": self._city}) is not None

    def counted_starts(self, *, since: datetime) -> dict[str, tuple[int, datetime]]:
        """By session: its starts after `since` that count towards quarantine, and the latest time on record of them."""
        rows = self._db.rows(COUNTED_STARTS, {"city": self._city, "since": stamp(since)})
        return {row["session"]: (row["count"], instant(max(row["started"], row["ended"] or 0))) for row in rows}
