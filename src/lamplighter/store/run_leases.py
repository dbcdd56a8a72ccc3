"""Who carries out runs: their leases, and those that wait for a process, a stage or the end of their wisp."""

import json
from collections.abc import Collection, Iterable
from datetime import datetime

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.store.engine import Row, Write, stamp
from lamplighter.store.run_lists import RunLists
from lamplighter.store.run_rows import RUNS
from lamplighter.store.summary import ACTIVE_STATES

# the index runs_by_state serves this; running exec and agent runs that have no lease, or an expired one, save those
# that a person has taken and whose program has ended
ORPHANS = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula'
        AND node = :node AND (lease_owner IS NULL OR lease_expires_at <= :now)
        AND (taken_by IS NULL OR session_id IS NOT NULL) {{where}}
    ORDER BY id LIMIT :limit {{lock}}"""
# the index runs_by_state serves these
STRANDED = """
    SELECT id FROM runs WHERE city_id = :city AND state = 'running' AND action <> 'formula'
        AND lease_owner IS NULL AND orphaned_at <= :before AND taken_by IS NULL
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
OF_OWNER = """
    SELECT id, lease_expires_at FROM runs WHERE city_id = :city AND lease_owner = :owner ORDER BY id {for_update}"""
VOID = """
    UPDATE runs SET lease_owner = NULL, lease_expires_at = NULL, orphaned_at = :now
    WHERE city_id = :city AND lease_owner = :owner AND id {any:ids}"""
RENEW = Write(
    """
    UPDATE runs SET lease_expires_at = :until
    {each} WHERE city_id = :city AND id = :id AND lease_owner = :owner AND lease_version = :version
        AND lease_expires_at < :until""",
    whole="until version",
    key="id",
    must=False,
)
# the primary key serves this
CALLED = """
    SELECT id, taken_by FROM runs WHERE city_id = :city AND id {any:ids}
        AND (pending IS NOT NULL OR taken_by IS NOT NULL)"""
STATES = "SELECT id, state, lease_version, lease_owner FROM runs WHERE city_id = :city AND id {any:ids}"


class RunLeases(RunLists):
    def orphans(self, node: str, now: datetime, *, limit: int, rigs: frozenset[str] | None = None) -> list[Run]:
        """Running runs of that node and these rigs, or of no rig, without a valid lease; locked, to be adopted."""
        return [RUNS.read(row) for row in self._orphans(node, now, limit, rigs, lock="{skip_claimed}")]

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

    def void_leases(
        self, owner: str, *, now: datetime, spared: Collection[str] = (), ending_until: datetime | None = None
    ) -> int:
        """Void the owner's leases, except those of runs in `spared` and those that end after `ending_until`."""
        leased = self._db.rows(OF_OWNER, {"city": self._city, "owner": owner})  # locked in order of ids, as everywhere
        last = None if ending_until is None else stamp(ending_until)
        chosen = [
            row["id"] for row in leased if row["id"] not in spared and (last is None or row["lease_expires_at"] <= last)
        ]
        if not chosen:
            return 0
        params = {"city": self._city, "owner": owner, "now": stamp(now), "ids": json.dumps(chosen)}
        return self._db.execute(VOID, params)

    def renew(self, run: str, owner: str, version: int, *, until: datetime) -> None:
        """Extend the lease; does nothing if another owner or a newer lease version holds the run by now."""
        params = {"id": run, "owner": owner, "version": version, "until": stamp(until)}
        self._db.write(RENEW, self._city, params)

    def states(self, ids: Iterable[str]) -> dict[str, tuple[RunState, int, str | None]]:
        """State, lease version and lease owner of each."""
        rows = self._db.rows(STATES, {"city": self._city, "ids": json.dumps(sorted(ids))})
        return {row["id"]: (RunState(row["state"]), row["lease_version"], row["lease_owner"]) for row in rows}

    def called(self, ids: Iterable[str]) -> dict[str, bool]:
        """Those of them whose claim of success waits to be verified, or, with True, which a person has taken."""
        rows = self._db.rows(CALLED, {"city": self._city, "ids": json.dumps(sorted(ids))})
        return {row["id"]: row["taken_by"] is not None for row in rows}
