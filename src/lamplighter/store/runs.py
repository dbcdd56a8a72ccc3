"""Runs and their timelines: rows in and out, every change a compare-and-set on state and lease version."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.errors import Conflict
from lamplighter.store.engine.db import Db, Row, instant_or_none, stamp
from lamplighter.store.engine.deferred import Write
from lamplighter.store.run_rows import (
    NewRunEvent,
    Papers,
    RunEvent,
    RunRow,
    ended,
    made,
    moving,
    run_event,
    run_row,
    told,
    written,
)

ACTIVE_STATES = "state IN ('queued', 'enriching', 'ready', 'running')"
_FIXED = """
    id, automation_id, automation, rig, action, trigger_id, trigger_kind, trigger_event_id, definition, attempt,
    retry_of, causes, bead_id, created_at"""
_MOVING = """
    state, reason, stage, error, lease_version, lease_owner, lease_expires_at, node, wisp_id, wisp_elsewhere,
    started_at, ended_at, deadline_at, last_activity_at, exit_code, duration_us, output_tail, summary, session_id,
    completion_id, assigned_to, assigned_at, cost, configuration, prompt_sent_at, tokens, worktree"""
_WHOLE = """
    lease_version lease_expires_at wisp_elsewhere started_at ended_at deadline_at last_activity_at exit_code duration_us
    assigned_at prompt_sent_at tokens version_before"""
# Only the columns known when a run is created; the others start with the defaults of the schema.
INSERT = Write(
    f"""
    INSERT INTO runs (city_id, {_FIXED}, state, lease_version, lease_owner, lease_expires_at, node, started_at,
            deadline_at, last_activity_at)
    SELECT :city, :id, :automation_id, :automation, :rig, :action, :trigger_id, :trigger_kind, :trigger_event_id,
            :definition, :attempt, :retry_of, :causes, :bead_id, :created_at, :state, :lease_version, :lease_owner,
            :lease_expires_at, :node, :started_at, :deadline_at, :last_activity_at {{each}}""",
    whole="attempt created_at lease_version lease_expires_at started_at deadline_at last_activity_at",
    first=True,
)
SWAP = Write(
    """
    UPDATE runs SET state = :state, reason = :reason, stage = :stage, error = :error, lease_version = :lease_version,
        lease_owner = :lease_owner, lease_expires_at = :lease_expires_at, node = :node, wisp_id = :wisp_id,
        wisp_elsewhere = :wisp_elsewhere, started_at = :started_at, ended_at = :ended_at, deadline_at = :deadline_at,
        last_activity_at = :last_activity_at,
        exit_code = :exit_code, duration_us = :duration_us, output_tail = :output_tail, summary = :summary,
        session_id = :session_id, completion_id = :completion_id, assigned_to = :assigned_to,
        assigned_at = :assigned_at, cost = :cost, configuration = :configuration, prompt_sent_at = :prompt_sent_at,
        tokens = :tokens, worktree = :worktree
    {each} WHERE city_id = :city AND id = :id AND state = :state_before AND lease_version = :version_before""",
    whole=_WHOLE,
    real="cost",
    key="id",
)
# As SWAP, but only the columns that an end changes: the process that ends a run need not have read the others.
END = Write(
    """
    UPDATE runs SET state = :state, reason = :reason, stage = :stage, error = :error, lease_owner = NULL,
        lease_expires_at = NULL, ended_at = :ended_at, last_activity_at = :last_activity_at, exit_code = :exit_code,
        duration_us = :duration_us, output_tail = :output_tail, summary = :summary, completion_id = :completion_id
    {each} WHERE city_id = :city AND id = :id AND state = :state_before AND lease_version = :version_before""",
    whole="ended_at last_activity_at exit_code duration_us version_before",
    key="id",
)
GET = f"SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city AND id = :id"
LOCK = GET + " {for_update}"
LOCK_SOME = f"""
    SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city AND id {{any:ids}} ORDER BY id {{for_update}}"""
AUTOMATIONS_OF = "SELECT id, automation_id FROM runs WHERE city_id = :city AND id {any:ids}"
AUTOMATION_OF = "SELECT automation_id FROM runs WHERE city_id = :city AND id = :id"
# the index runs_active serves this
ACTIVE_OF = f"""
    SELECT id, deadline_at FROM runs WHERE city_id = :city AND automation_id = :automation AND {ACTIVE_STATES}
    ORDER BY id"""
# the index runs_active serves this
ANY_ACTIVE = f"SELECT 1 AS found FROM runs WHERE city_id = :city AND {ACTIVE_STATES} LIMIT 1"
# the index runs_active serves this
OVERDUE = f"""
    SELECT id FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND deadline_at <= :now
        AND NOT (action = 'agent' AND state = 'running') ORDER BY deadline_at, id LIMIT :limit"""
# the index runs_by_state serves this; running exec and agent runs that have no lease, or an expired one
ORPHANS = f"""
    SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula'
        AND node = :node AND (lease_owner IS NULL OR lease_expires_at <= :now) {{where}}
    ORDER BY id LIMIT :limit {{lock}}"""
# the index runs_by_state serves these
STRANDED = """
    SELECT id FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula'
        AND lease_owner IS NULL AND orphaned_at <= :before
        AND node NOT IN (SELECT node FROM owners WHERE city_id = :city AND node IS NOT NULL)
    ORDER BY id LIMIT :limit"""
BUSY_NODES = "SELECT DISTINCT node FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula'"
HELD = "SELECT id, lease_owner FROM runs WHERE city_id = :city AND state = 'running' AND lease_owner IS NOT NULL"
# the index runs_active serves this, and the two partial indexes of the outbox
LOST = f"""
    SELECT id, state, action FROM runs WHERE city_id = :city AND {ACTIVE_STATES}
        AND (state <> 'running' OR (action = 'formula' AND wisp_id IS NULL))
        AND (lease_owner IS NULL OR lease_expires_at <= :now) AND created_at < :before
        AND id NOT IN (SELECT run_id FROM outbox WHERE city_id = :city AND state = 'pending' AND run_id IS NOT NULL)
        AND id NOT IN (SELECT run_id FROM outbox WHERE city_id = :city AND state = 'claimed' AND run_id IS NOT NULL)
    ORDER BY id LIMIT :limit"""
# the index runs_active serves this, then the primary key of beads
WISPS_ENDED = f"""
    SELECT runs.id AS id, beads.status AS status FROM runs
    LEFT JOIN beads ON beads.city_id = runs.city_id AND beads.id = runs.wisp_id
    WHERE runs.city_id = :city AND runs.{ACTIVE_STATES} AND runs.state = 'running' AND runs.action = 'formula'
        AND runs.wisp_id IS NOT NULL AND runs.wisp_elsewhere = 0
        AND (beads.status IS NULL OR beads.status = 'closed')
    ORDER BY runs.id LIMIT :limit"""
WISPS_ELSEWHERE = f"""
    SELECT id, wisp_id FROM runs
    WHERE city_id = :city AND {ACTIVE_STATES} AND state = 'running' AND action = 'formula' AND wisp_id IS NOT NULL
        AND wisp_elsewhere = 1 ORDER BY id LIMIT :limit"""
# the index runs_leased serves this
OF_OWNER = "SELECT id FROM runs WHERE city_id = :city AND lease_owner = :owner ORDER BY id {for_update}"
VOID = """
    UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL, orphaned_at = :now
    WHERE city_id = :city AND lease_owner = :owner"""
RENEW = Write(
    """
    UPDATE runs SET lease_expires_at = :until
    {each} WHERE city_id = :city AND id = :id AND lease_owner = :owner AND lease_version = :version
        AND lease_expires_at < :until""",
    whole="until version",
    key="id",
    must=False,
)
STATES = "SELECT id, state, lease_version, lease_owner FROM runs WHERE city_id = :city AND id {any:ids}"
CAUSES = "SELECT id, automation, causes FROM runs WHERE city_id = :city AND id {any:ids}"
# Each filter has its own statement and index: the primary key, runs_of, runs_by_state (which leaves out succeeded runs
# on PostgreSQL: those are found by age)
LIST = f"""
    SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city {{where}} AND id < :before
    ORDER BY id DESC LIMIT :limit"""
COUNTS = "SELECT state, count(*) AS count FROM runs WHERE city_id = :city AND id >= :since GROUP BY state"
ACTIVE_COUNTS = f"SELECT state, count(*) AS count FROM runs WHERE city_id = :city AND {ACTIVE_STATES} GROUP BY state"
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
    UPDATE runs SET session_id = :session, prompt_sent_at = :now, last_activity_at = :now
    WHERE city_id = :city AND id = :id AND session_id IS NULL"""
SPENT = """
    UPDATE runs SET tokens = :tokens, cost = :cost, last_activity_at = :now WHERE city_id = :city AND id = :id"""
SET_WORKTREE = "UPDATE runs SET worktree = :worktree WHERE city_id = :city AND id = :id"
# the index runs_by_state serves this; agent runs that are past their deadline or silent for long
STALE = f"""
    SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city AND {ACTIVE_STATES} AND action = 'agent'
        AND (deadline_at <= :now OR (state = 'running' AND last_activity_at < :silent_since))
    ORDER BY deadline_at, id LIMIT :limit"""
# the index runs_with_worktree serves this
WITH_WORKTREE = f"""
    SELECT {_FIXED}, {_MOVING} FROM runs WHERE city_id = :city AND worktree IS NOT NULL AND node = :node
        AND ended_at IS NOT NULL AND ended_at < :before ORDER BY id LIMIT :limit"""


class StaleRun(Conflict):
    def __init__(self, run: str) -> None:
        super().__init__(
            f"Run {run} was changed by another process.", hint="Look at it again; nothing was overwritten."
        )


class Runs:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def insert(self, row: RunRow, events: Iterable[NewRunEvent] = ()) -> None:
        """Insert a run that was just fired, and possibly started too, with the first events of its timeline."""
        self._db.write(INSERT, self._city, made(row))
        for event in events:
            self.add_event(event)

    def swap(self, before: Run, after: RunRow) -> None:
        """Raises StaleRun unless the row still has the state and lease version of `before`."""
        expected = {"state_before": before.state.value, "version_before": before.lease.version}
        if not self._db.write(SWAP, self._city, moving(after) | expected):
            raise StaleRun(before.id)

    def end(self, before: Run, after: RunRow) -> None:
        """As `swap`, for a run that has ended: writes only the columns that its end changes."""
        expected = {"state_before": before.state.value, "version_before": before.lease.version}
        if not self._db.write(END, self._city, ended(after) | expected):
            raise StaleRun(before.id)

    def get(self, run: str) -> RunRow | None:
        return self._one(GET, run)

    def lock(self, run: str) -> RunRow | None:
        return self._one(LOCK, run)

    def lock_some(self, ids: Iterable[str]) -> dict[str, RunRow]:
        """Lock the runs in order of their ids, as every process does."""
        rows = self._db.rows(LOCK_SOME, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: run_row(row) for row in rows}

    def automations_of(self, ids: Iterable[str]) -> dict[str, str]:
        rows = self._db.rows(AUTOMATIONS_OF, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["id"]: row["automation_id"] for row in rows}

    def automation_of(self, run: str) -> str | None:
        row = self._db.row(AUTOMATION_OF, {"city": self._city, "id": run})
        return None if row is None else row["automation_id"]

    def active_of(self, automation: str) -> list[tuple[str, datetime | None]]:
        rows = self._db.rows(ACTIVE_OF, {"city": self._city, "automation": automation})
        return [(row["id"], instant_or_none(row["deadline_at"])) for row in rows]

    def any_active(self) -> bool:
        return self._db.row(ANY_ACTIVE, {"city": self._city}) is not None

    def overdue(self, now: datetime, *, limit: int) -> list[str]:
        return self._ids(OVERDUE, {"now": stamp(now), "limit": limit})

    def orphans(self, node: str, now: datetime, *, limit: int, rigs: frozenset[str] | None = None) -> list[RunRow]:
        """Running runs of that node and these rigs, or of no rig, without a valid lease; locked, to be adopted."""
        return [run_row(row) for row in self._orphans(node, now, limit, rigs, lock="{skip_claimed}")]

    def has_orphans(self, node: str, now: datetime, *, rigs: frozenset[str] | None = None) -> bool:
        return bool(self._orphans(node, now, 1, rigs, lock=""))

    def _orphans(self, node: str, now: datetime, limit: int, rigs: frozenset[str] | None, *, lock: str) -> list[Row]:
        params: dict[str, object] = {"city": self._city, "node": node, "now": stamp(now), "limit": limit}
        where = ""
        if rigs is not None:
            where, params = "AND (rig IS NULL OR rig {any:rigs})", params | {"rigs": json.dumps(sorted(rigs))}
        return self._db.rows(ORPHANS.replace("{where}", where).replace("{lock}", lock), params)

    def stranded(self, *, before: datetime, limit: int) -> list[str]:
        """Running runs whose lease was voided by `before`, on nodes that have no registered process any more."""
        return self._ids(STRANDED, {"before": stamp(before), "limit": limit})

    def busy_nodes(self) -> set[str]:
        """Nodes on which an exec or agent run is running."""
        return {row["node"] for row in self._db.rows(BUSY_NODES, {"city": self._city}) if row["node"] is not None}

    def held(self) -> dict[str, str]:
        """Running runs that are leased, each with its lease owner."""
        return {row["id"]: row["lease_owner"] for row in self._db.rows(HELD, {"city": self._city})}

    def lost(self, now: datetime, *, before: datetime, limit: int) -> list[tuple[str, RunState, str]]:
        """Runs made before `before` that wait for a stage without lease or outbox item; each with state and action."""
        params = {"city": self._city, "now": stamp(now), "before": stamp(before), "limit": limit}
        return [(row["id"], RunState(row["state"]), row["action"]) for row in self._db.rows(LOST, params)]

    def wisps_ended(self, *, limit: int) -> list[tuple[str, bool]]:
        """Runs whose wisp was closed (True) or is gone (False)."""
        rows = self._db.rows(WISPS_ENDED, {"city": self._city, "limit": limit})
        return [(row["id"], row["status"] is not None) for row in rows]

    def wisps_elsewhere(self, *, limit: int) -> list[tuple[str, str]]:
        """Running runs with their wisps in an outside bead store."""
        rows = self._db.rows(WISPS_ELSEWHERE, {"city": self._city, "limit": limit})
        return [(row["id"], row["wisp_id"]) for row in rows]

    def void_leases(self, owner: str, *, now: datetime) -> int:
        self._db.rows(OF_OWNER, {"city": self._city, "owner": owner})  # locked in order of ids, as everywhere
        return self._db.execute(VOID, {"city": self._city, "owner": owner, "now": stamp(now)})

    def renew(self, run: str, owner: str, version: int, *, until: datetime) -> None:
        """Extend the lease; does nothing if another owner or a newer lease version holds the run by now."""
        params = {"id": run, "owner": owner, "version": version, "until": stamp(until)}
        self._db.write(RENEW, self._city, params)

    def states(self, ids: Iterable[str]) -> dict[str, tuple[RunState, int, str | None]]:
        """State, lease version and lease owner of each."""
        rows = self._db.rows(STATES, {"city": self._city, "ids": json.dumps(sorted(ids))})
        return {row["id"]: (RunState(row["state"]), row["lease_version"], row["lease_owner"]) for row in rows}

    def causes(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """For each run, the chain of automations behind whatever it causes, beginning with its own automation."""
        rows = self._db.rows(CAUSES, {"city": self._city, "ids": json.dumps(sorted(ids))})
        return {row["id"]: (row["automation"], *json.loads(row["causes"])) for row in rows}

    def page(
        self,
        *,
        automation: str | None = None,
        state: RunState | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Newest first; `before` is the last id of the previous page."""
        where, params = "", {"city": self._city, "before": before or "~", "limit": limit}
        if automation is not None:
            where, params = where + " AND automation = :automation", params | {"automation": automation}
        if state is not None:
            where, params = where + " AND state = :state", params | {"state": state.value}
        return [run_row(row) for row in self._db.rows(LIST.replace("{where}", where), params)]

    def counts(self, *, since: str) -> dict[str, int]:
        """How many runs from the id `since` on are in each state; active runs are counted whatever their age."""
        rows = self._db.rows(COUNTS, {"city": self._city, "since": since})
        active = self._db.rows(ACTIVE_COUNTS, {"city": self._city})
        return {row["state"]: row["count"] for row in (*rows, *active)}

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

    def began(self, run: str, session: str, now: datetime) -> bool:
        """Record its session, and that its prompt was sent; False when a session was recorded already."""
        params = {"city": self._city, "id": run, "session": session, "now": stamp(now)}
        return self._db.execute(BEGAN, params) == 1

    def spent(self, run: str, *, tokens: int, cost: float | None, now: datetime) -> None:
        params = {"city": self._city, "id": run, "tokens": tokens, "cost": cost, "now": stamp(now)}
        self._db.execute(SPENT, params)

    def set_worktree(self, run: str, worktree: Mapping[str, str] | None) -> None:
        self._db.execute(SET_WORKTREE, {"city": self._city, "id": run, "worktree": written(worktree)})

    def stale(self, now: datetime, *, silent_since: datetime, limit: int) -> list[RunRow]:
        """Active agent runs that are past their deadline, or silent since `silent_since`; the longest overdue first."""
        params = {"city": self._city, "now": stamp(now), "silent_since": stamp(silent_since), "limit": limit}
        return [run_row(row) for row in self._db.rows(STALE, params)]

    def with_worktree(self, node: str, *, before: datetime, limit: int) -> list[RunRow]:
        """Runs of that node that ended before `before` and still have a worktree."""
        params = {"city": self._city, "node": node, "before": stamp(before), "limit": limit}
        return [run_row(row) for row in self._db.rows(WITH_WORKTREE, params)]

    def _one(self, sql: str, run: str) -> RunRow | None:
        row = self._db.row(sql, {"city": self._city, "id": run})
        return None if row is None else run_row(row)

    def _ids(self, sql: str, params: dict[str, object]) -> list[str]:
        return [row["id"] for row in self._db.rows(sql, params | {"city": self._city})]
