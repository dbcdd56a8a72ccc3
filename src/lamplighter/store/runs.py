"""Runs and their timelines: rows in and out, every change a compare-and-set on state and lease version.

How they are listed and searched for stands in `run_lists`, who carries them out in `run_leases`.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from lamplighter.domain.runs.model import Run
from lamplighter.kit.errors import Conflict
from lamplighter.store.engine import Write, instant_or_none, stamp
from lamplighter.store.run_leases import RunLeases
from lamplighter.store.run_lists import IDS_ALIKE
from lamplighter.store.run_rows import (
    ENDED,
    MADE,
    MOVING,
    RUNS,
    NewRunEvent,
    Papers,
    RunEvent,
    ended,
    made,
    moving,
    run_event,
    told,
    written,
)
from lamplighter.store.summary import ACTIVE_STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.automations.decisions import ActiveRun

INSERT = Write(
    f"INSERT INTO runs (city_id, {RUNS.listed(*MADE)}) SELECT :city, {RUNS.given(*MADE)} {{each}}",
    whole=RUNS.whole(*MADE),
    first=True,
)
SWAP = Write(
    f"""
    UPDATE runs SET {RUNS.assigned(*MOVING)}
    {{each}} WHERE city_id = :city AND id = :id AND state = :state_before AND lease_version = :version_before""",
    whole=f"{RUNS.whole(*MOVING)} version_before",
    real=RUNS.real(*MOVING),
    key="id",
)
# As SWAP, but only the columns that an end changes: the process that ends a run need not have read the others.
END = Write(
    f"""
    UPDATE runs SET {RUNS.assigned(*ENDED)}, lease_owner = NULL, lease_expires_at = NULL
    {{each}} WHERE city_id = :city AND id = :id AND state = :state_before AND lease_version = :version_before""",
    whole=f"{RUNS.whole(*ENDED)} version_before",
    key="id",
)
GET = f"SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
LOCK_SOME = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND id {{any:ids}} ORDER BY id {{for_update}}"""
SOME = f"SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND id {{any:ids}}"
AUTOMATIONS_OF = "SELECT id, automation_id FROM runs WHERE city_id = :city AND id {any:ids}"
AUTOMATION_OF = "SELECT automation_id FROM runs WHERE city_id = :city AND id = :id"
# One that goes on with a run at work waits for the end of that, and its clock does not go yet; the primary key serves
# the look at that run.
_CLOCK_GOES = """NOT EXISTS (
        SELECT 1 FROM runs AS earlier WHERE earlier.city_id = runs.city_id AND earlier.id = runs.continues
            AND earlier.ended_at IS NULL)"""
# the index runs_active serves this; the clock of one that a person has taken stands
ACTIVE_OF = f"""
    SELECT id, CASE WHEN taken_by IS NULL THEN deadline_at END AS deadline_at, taken_by FROM runs
    WHERE city_id = :city AND automation_id = :automation AND {ACTIVE_STATES} AND continues IS NULL ORDER BY id"""
# the index runs_active serves this
TURNS_OF = f"""
    SELECT id, CASE WHEN taken_by IS NULL AND state = 'running' THEN deadline_at END AS deadline_at, taken_by FROM runs
    WHERE city_id = :city AND automation_id = :automation AND {ACTIVE_STATES} AND trigger_kind <> 'message'
    ORDER BY id"""
# the index runs_active serves this
ANY_ACTIVE = f"SELECT 1 AS found FROM runs WHERE city_id = :city AND {ACTIVE_STATES} LIMIT 1"
# the index runs_active serves this
OVERDUE = f"""
    SELECT id FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND deadline_at <= :now
        AND NOT (action = 'agent' AND state = 'running') AND {_CLOCK_GOES} ORDER BY deadline_at, id LIMIT :limit"""
# the index runs_by_state serves this (SQLite takes it only with `id` in the order);
# running exec and agent runs are ended by the process that carries them out
NEXT_DEADLINE = f"""
    SELECT deadline_at FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND deadline_at <= :before
        AND NOT (state = 'running' AND action <> 'formula') AND {_CLOCK_GOES} ORDER BY deadline_at, id LIMIT 1"""
CAUSES = "SELECT id, automation, causes FROM runs WHERE city_id = :city AND id {any:ids}"
ADD_EVENT = Write(
    """
    INSERT INTO run_events (city_id, run_id, number, at, type, from_state, to_state, actor, data)
    SELECT :city, :run, {next_run_event}, :at, :type, :from_state, :to_state, :actor, :data {each}""",
    whole="at",
    json="data",
)
EVENTS = """
    SELECT at, type, from_state, to_state, actor, data FROM run_events
    WHERE city_id = :city AND run_id = :run ORDER BY number"""
# Ids are in order of time, so the primary key finds the oldest.
OLD = """
    SELECT id, bead_id FROM runs WHERE city_id = :city AND id < :before_id AND ended_at IS NOT NULL
        AND ended_at < :before ORDER BY id LIMIT :limit"""
DELETE_EVENTS = "DELETE FROM run_events WHERE city_id = :city AND run_id {any:ids}"
DELETE = "DELETE FROM runs WHERE city_id = :city AND id {any:ids}"
# Written and read apart from the run: enrichment and completion are large and seldom needed.
KEEP_ENRICHMENT = "UPDATE runs SET enrichment = :body WHERE city_id = :city AND id = :id"
KEEP_COMPLETION = "UPDATE runs SET completion = :body WHERE city_id = :city AND id = :id"
PAPERS = "SELECT enrichment, completion FROM runs WHERE city_id = :city AND id = :id"
# May come after the end of the run: a fast agent reports its end before the start of its session is recorded.
BEGAN = """
    UPDATE runs SET session_id = :session, prompt_sent_at = :now, last_activity_at = :now,
        in_force = COALESCE(:in_force, in_force)
    WHERE city_id = :city AND id = :id AND session_id IS NULL"""
SPENT = """
    UPDATE runs SET tokens = :tokens, cost = :cost, last_activity_at = :now WHERE city_id = :city AND id = :id"""
# The first answer wins.
CONTINUE = """
    UPDATE runs SET continued_by = :by WHERE city_id = :city AND id = :id AND continued_by IS NULL"""
START_CLOCK = """
    UPDATE runs SET deadline_at = :now + deadline_at - created_at
    WHERE city_id = :city AND id = :id AND ended_at IS NULL AND deadline_at IS NOT NULL"""
GO_ON_WITH = "UPDATE runs SET continues = :earlier WHERE city_id = :city AND id = :id AND ended_at IS NULL"
SET_WORKTREE = "UPDATE runs SET worktree = :worktree WHERE city_id = :city AND id = :id"
# the index runs_by_state serves this; agent runs that are past their deadline or silent for long
STALE = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND action = 'agent'
        AND taken_by IS NULL AND (deadline_at <= :now OR (state = 'running' AND last_activity_at < :silent_since))
        AND {_CLOCK_GOES}
    ORDER BY deadline_at, id LIMIT :limit"""
# the index runs_active serves this
PORTS_TAKEN = f"""
    SELECT ports FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND node = :node AND ports IS NOT NULL"""
SET_PORTS = "UPDATE runs SET ports = :ports WHERE city_id = :city AND id = :id"
# the index runs_with_worktree serves this
WITH_WORKTREE = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND worktree IS NOT NULL AND node = :node
        AND ended_at IS NOT NULL AND ended_at < :before ORDER BY id LIMIT :limit"""
# the index runs_with_worktree serves this
WORKTREES_IN_USE = f"""
    SELECT id, worktree FROM runs WHERE city_id = :city AND worktree IS NOT NULL AND {ACTIVE_STATES}"""

# the index runs_unjudged serves this
UNJUDGED = f"""
    SELECT {RUNS.listed()} FROM runs
    WHERE city_id = :city AND fingerprint IS NULL AND state IN ('failed', 'needs_human', 'timed_out')
    ORDER BY id LIMIT :limit {{for_update}}"""
JUDGE = "UPDATE runs SET fingerprint = :fingerprint WHERE city_id = :city AND id = :id"


class StaleRun(Conflict):
    def __init__(self, run: str) -> None:
        super().__init__(
            f"Run {run} was changed by another process.", hint="Look at it again; nothing was overwritten."
        )


class Runs(RunLeases):
    def insert(self, row: Run, events: Iterable[NewRunEvent] = ()) -> None:
        """Insert a run that was just fired, and possibly started too, with the first events of its timeline."""
        self._db.write(INSERT, self._city, made(row))
        for event in events:
            self.add_event(event)

    def swap(self, before: Run, after: Run) -> None:
        """Raises StaleRun unless the row still has the state and lease version of `before`."""
        expected = {"state_before": before.state.value, "version_before": before.lease.version}
        if not self._db.write(SWAP, self._city, moving(after) | expected):
            raise StaleRun(before.id)

    def end(self, before: Run, after: Run) -> None:
        """As `swap`, for a run that has ended: writes only the columns that its end changes."""
        expected = {"state_before": before.state.value, "version_before": before.lease.version}
        if not self._db.write(END, self._city, ended(after) | expected):
            raise StaleRun(before.id)

    def get(self, run: str) -> Run | None:
        return self._one(GET, run)

    def lock(self, run: str) -> Run | None:
        return self._one(LOCK, run)

    def some(self, ids: Iterable[str]) -> dict[str, Run]:
        rows = self._db.rows(SOME, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: RUNS.read(row) for row in rows}

    def lock_some(self, ids: Iterable[str]) -> dict[str, Run]:
        """Lock the runs in order of their ids, as every process does."""
        rows = self._db.rows(LOCK_SOME, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: RUNS.read(row) for row in rows}

    def automations_of(self, ids: Iterable[str]) -> dict[str, str]:
        rows = self._db.rows(AUTOMATIONS_OF, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: row["automation_id"] for row in rows}

    def automation_of(self, run: str) -> str | None:
        row = self._db.row(AUTOMATION_OF, {"city": self._city, "id": run})
        return None if row is None else row["automation_id"]

    def active_of(self, automation: str, *, turns: bool = False) -> "list[ActiveRun]":
        """Those that were fired and have not ended; with `turns` also those that go on with a conversation, of which
        one whose turn has not come has no deadline yet.
        """
        from lamplighter.domain.automations.decisions import ActiveRun  # commands that list runs do without

        rows = self._db.rows(TURNS_OF if turns else ACTIVE_OF, {"city": self._city, "automation": automation})
        return [
            ActiveRun(row["id"], instant_or_none(row["deadline_at"]), taken=row["taken_by"] is not None) for row in rows
        ]

    def any_active(self) -> bool:
        return self._db.row(ANY_ACTIVE, {"city": self._city}) is not None

    def overdue(self, now: datetime, *, limit: int) -> list[str]:
        return self._ids(OVERDUE, {"now": stamp(now), "limit": limit})

    def next_deadline(self, *, before: datetime) -> datetime | None:
        """The earliest deadline until `before` of a run that waits for a worker or for its wisp."""
        row = self._db.row(NEXT_DEADLINE, {"city": self._city, "before": stamp(before)})
        return None if row is None else instant_or_none(row["deadline_at"])

    def causes(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """For each run, the chain of automations behind whatever it causes, beginning with its own automation."""
        rows = self._db.rows(CAUSES, {"city": self._city, "ids": json.dumps(sorted(ids))})
        return {row["id"]: (row["automation"], *json.loads(row["causes"])) for row in rows}

    def add_event(self, event: NewRunEvent) -> None:
        """Events are numbered in the order in which they are added."""
        self._db.write(ADD_EVENT, self._city, told(event))

    def events(self, run: str) -> list[RunEvent]:
        rows = self._db.rows(EVENTS, {"city": self._city, "run": run})
        return [run_event(number, row) for number, row in enumerate(rows, 1)]

    def old(self, *, before: datetime, before_id: str, limit: int) -> list[tuple[str, str | None]]:
        """The oldest ended runs, each with its tracking bead."""
        params = {"city": self._city, "before": stamp(before), "before_id": before_id, "limit": limit}
        return [(row["id"], row["bead_id"]) for row in self._db.rows(OLD, params)]

    def delete(self, ids: Iterable[str]) -> int:
        """Delete these runs with their timelines."""
        params = {"city": self._city, "ids": json.dumps(sorted(ids))}
        deleted = self._db.execute(DELETE, params)
        self._db.execute(DELETE_EVENTS, params)  # last: a transaction that held a run's row may have added some
        return deleted

    def keep_enrichment(self, run: str, body: str) -> None:
        self._db.execute(KEEP_ENRICHMENT, {"city": self._city, "id": run, "body": body})

    def keep_completion(self, run: str, body: str) -> None:
        self._db.execute(KEEP_COMPLETION, {"city": self._city, "id": run, "body": body})

    def papers(self, run: str) -> Papers:
        row = self._db.row(PAPERS, {"city": self._city, "id": run})
        return Papers(None, None) if row is None else Papers(row["enrichment"], row["completion"])

    def began(self, run: str, session: str, in_force: Mapping[str, str] | None, now: datetime) -> bool:
        """Record its session, and that its prompt was sent; False when a session was recorded already."""
        kept = written(in_force)
        params = {"city": self._city, "id": run, "session": session, "now": stamp(now), "in_force": kept}
        return self._db.execute(BEGAN, params) == 1

    def spent(self, run: str, *, tokens: int, cost: float | None, now: datetime) -> None:
        params = {"city": self._city, "id": run, "tokens": tokens, "cost": cost, "now": stamp(now)}
        self._db.execute(SPENT, params)

    def set_worktree(self, run: str, worktree: Mapping[str, str] | None) -> None:
        self._db.execute(SET_WORKTREE, {"city": self._city, "id": run, "worktree": written(worktree)})

    def continued(self, run: str, by: str) -> bool:
        """Record the run that goes on with its work; False when another one does."""
        return self._db.execute(CONTINUE, {"city": self._city, "id": run, "by": by}) == 1

    def start_clock(self, run: str, now: datetime) -> None:
        """Its deadline is as far from now as it was from when the run was made."""
        self._db.execute(START_CLOCK, {"city": self._city, "id": run, "now": stamp(now)})

    def go_on_with(self, run: str, earlier: str) -> None:
        """It waits for another run than it did: what stood between them ended before its turn came."""
        self._db.execute(GO_ON_WITH, {"city": self._city, "id": run, "earlier": earlier})

    def stale(self, now: datetime, *, silent_since: datetime, limit: int) -> list[Run]:
        """Active agent runs that are past their deadline, or silent since `silent_since`; the longest overdue first."""
        params = {"city": self._city, "now": stamp(now), "silent_since": stamp(silent_since), "limit": limit}
        return [RUNS.read(row) for row in self._db.rows(STALE, params)]

    def ports_taken(self, node: str) -> list[str]:
        """The blocks of ports of the active runs of that node."""
        return [row["ports"] for row in self._db.rows(PORTS_TAKEN, {"city": self._city, "node": node})]

    def set_ports(self, run: str, ports: str) -> None:
        self._db.execute(SET_PORTS, {"city": self._city, "id": run, "ports": ports})

    def with_worktree(self, node: str, *, before: datetime, limit: int) -> list[Run]:
        """Runs of that node that ended before `before` and still have a worktree."""
        params = {"city": self._city, "node": node, "before": stamp(before), "limit": limit}
        return [RUNS.read(row) for row in self._db.rows(WITH_WORKTREE, params)]

    def in_worktrees(self) -> dict[str, str]:
        """The active runs that have a worktree, by its path."""
        rows = self._db.rows(WORKTREES_IN_USE, {"city": self._city})
        return {json.loads(row["worktree"])["path"]: row["id"] for row in rows}

    def lock_alike(self, fingerprint: str, *, after: int, limit: int) -> list[Run]:
        """As `alike`, locked in order of their ids, and only those that still have the fingerprint."""
        params = {"fingerprint": fingerprint, "after": after, "limit": limit}
        found = self.lock_some(self._ids(IDS_ALIKE, params))
        return [run for run in found.values() if run.fingerprint == fingerprint]

    def unjudged(self, *, limit: int) -> list[Run]:
        """Runs that may need a person, and that the program which ended them did not judge; locked."""
        return [RUNS.read(row) for row in self._db.rows(UNJUDGED, {"city": self._city, "limit": limit})]

    def judge(self, run: str, fingerprint: str) -> None:
        self._db.execute(JUDGE, {"city": self._city, "id": run, "fingerprint": fingerprint})

    def _one(self, sql: str, run: str) -> Run | None:
        row = self._db.row(sql, {"city": self._city, "id": run})
        return None if row is None else RUNS.read(row)
