"""Runs as they are listed and searched for: newest first, by what an index serves."""

import json
from collections.abc import Iterable
from datetime import datetime

from lamplighter.domain.inbox.items import Folded
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.ids import oldest_id
from lamplighter.store.engine import Db, instant, instant_or_none, stamp
from lamplighter.store.run_rows import RUNS, LastRun
from lamplighter.store.run_search import A_MINUTE, MOST_SEARCHED, compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.domain.runs.query import RunQuery

# Each filter has its own statement and index: the primary key, runs_of, runs_by_state (which leaves out succeeded runs
# on PostgreSQL: those are found by age)
LIST = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city {{where}} AND id < :before
    ORDER BY id DESC LIMIT :limit"""
# As LIST, with the one term that an index serves in `{driven}` and the others in `{where}`: those are compared in at
# most so many runs, however rare what is searched for.
SEARCH = f"""
    SELECT {RUNS.listed()} FROM (
        SELECT {RUNS.listed()} FROM runs WHERE city_id = :city {{driven}} AND id < :before ORDER BY id DESC LIMIT :most
    ) AS looked WHERE 1 = 1 {{where}} ORDER BY id DESC LIMIT :limit"""
SEARCHED = """
    SELECT count(*) AS number, min(id) AS last FROM (
        SELECT id FROM runs WHERE city_id = :city {driven} AND id < :before ORDER BY id DESC LIMIT :most) AS looked"""
# As SEARCH and SEARCHED, for the ids alone
FOUND_IDS = """
    SELECT id FROM (
        SELECT id, state, automation, reason, rig, trigger_kind, action, continued_by, assigned_to, cost FROM runs
        WHERE city_id = :city {driven} AND id < :before ORDER BY id DESC LIMIT :most
    ) AS looked WHERE 1 = 1 {where} ORDER BY id DESC LIMIT :limit"""
# the index runs_of serves this, once for each automation
LAST_OF = """
    SELECT id, automation, state, reason, started_at, ended_at FROM runs WHERE city_id = :city AND id IN (
        SELECT (SELECT max(last.id) FROM runs AS last
                WHERE last.city_id = :city AND last.automation = automations.scoped_name)
        FROM automations WHERE automations.city_id = :city AND automations.id {any:ids})"""
# the primary key serves these two, runs_of the second where an automation is named
BEGINNING = """
    SELECT id FROM runs WHERE city_id = :city AND id >= :low AND id < :high ORDER BY id DESC LIMIT :limit"""
NEWEST = "SELECT id FROM runs WHERE city_id = :city {where} ORDER BY id DESC LIMIT 1"
# Reads every id in the index of the primary key, which is asked for only where a person types the end of one.
ENDING = "SELECT id FROM runs WHERE city_id = :city AND id LIKE :pattern ORDER BY id DESC LIMIT :limit"
# the index runs_of serves this: a retry is made after what it repeats
RETRIED_BY = """
    SELECT id FROM runs WHERE city_id = :city AND automation = :automation AND id > :id AND retry_of = :id
    ORDER BY id LIMIT 1"""
# the index runs_with_worktree serves this
WORKTREES = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND worktree IS NOT NULL ORDER BY id DESC LIMIT :limit"""
# the index runs_by_fingerprint serves these
FOLDED = """
    SELECT count(*) AS count, min(ended_at) AS first, max(ended_at) AS last FROM runs
    WHERE city_id = :city AND fingerprint = :fingerprint AND ended_at > :after"""
ALIKE = f"""
    SELECT {RUNS.listed()} FROM runs WHERE city_id = :city AND fingerprint = :fingerprint AND ended_at > :after
    ORDER BY ended_at DESC, id DESC LIMIT :limit"""
IDS_ALIKE = """
    SELECT id FROM runs WHERE city_id = :city AND fingerprint = :fingerprint AND ended_at > :after
    ORDER BY ended_at DESC, id DESC LIMIT :limit"""
# the index runs_retried serves this
RETRIED = "SELECT retry_of FROM runs WHERE city_id = :city AND retry_of IS NOT NULL AND retry_of {any:ids}"
# the index runs_of serves this
SUCCEEDED_SINCE = """
    SELECT id FROM runs WHERE city_id = :city AND automation = :automation AND id > :after AND state = 'succeeded'
        AND ended_at > :since ORDER BY id LIMIT 1"""


class RunLists:
    def __init__(self, db: Db, city: str) -> None:
        self._db = db
        self._city = city

    def page(
        self,
        *,
        automation: str | None = None,
        state: RunState | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Newest first; `before` is the last id of the previous page."""
        where, params = "", {"city": self._city, "before": before or "~", "limit": limit}
        if automation is not None:
            where, params = where + " AND automation = :automation", params | {"automation": automation}
        if state is not None:
            where, params = where + " AND state = :state", params | {"state": state.value}
        return [RUNS.read(row) for row in self._db.rows(LIST.replace("{where}", where), params)]

    def search(self, query: "RunQuery", *, before: str | None = None, limit: int = 50) -> tuple[list[Run], str | None]:
        """Newest first, as `page`; and the run up to which was searched, None if that is the oldest of all."""
        driven, where, params = compiled(query)
        params |= {"city": self._city, "before": before or "~", "limit": limit, "reach": max(limit, MOST_SEARCHED)}
        if query.until is not None:  # ids sort by the time they were made; the exact time is compared as well
            params["before"] = min(str(params["before"]), oldest_id("run", query.until + A_MINUTE))
        if not where:
            found = self._db.rows(LIST.replace("{where}", driven), params)
            return [RUNS.read(row) for row in found], None
        params["most"] = MOST_SEARCHED
        found = self._db.rows(SEARCH.replace("{driven}", driven).replace("{where}", where), params)
        if len(found) == limit:
            return [RUNS.read(row) for row in found], None
        looked = self._db.row(SEARCHED.replace("{driven}", driven), params)
        is_cut = looked is not None and looked["number"] == MOST_SEARCHED
        return [RUNS.read(row) for row in found], looked["last"] if looked is not None and is_cut else None

    def search_ids(self, query: "RunQuery", *, limit: int, most: int) -> tuple[list[str], str | None]:
        """The ids of the newest runs that fit; as `search`, but for the number of runs that are looked at."""
        driven, where, params = compiled(query)
        params |= {"city": self._city, "before": "~", "limit": limit, "reach": most}
        params["most"] = most if where else limit
        if query.until is not None:
            params["before"] = oldest_id("run", query.until + A_MINUTE)
        found = self._ids(FOUND_IDS.replace("{driven}", driven).replace("{where}", where), params)
        if len(found) == limit or not where:
            return found, None
        looked = self._db.row(SEARCHED.replace("{driven}", driven), params)
        is_cut = looked is not None and looked["number"] == most
        return found, looked["last"] if looked is not None and is_cut else None

    def last_of(self, automations: Iterable[str]) -> dict[str, LastRun]:
        """The newest run of each of these automations, given by their ids, by scoped name."""
        rows = self._db.rows(LAST_OF, {"city": self._city, "ids": json.dumps(sorted(set(automations)))})
        found = (
            LastRun(
                row["id"], row["automation"], RunState(row["state"]), row["reason"] or "",
                instant_or_none(row["started_at"]), instant_or_none(row["ended_at"]),
            )
            for row in rows
        )  # fmt: skip
        return {one.automation: one for one in found}

    def newest(self, *, automation: str | None = None) -> str | None:
        """The id of the newest run, of all or of one automation by its scoped name."""
        where = "" if automation is None else "AND automation = :automation"
        params = {"city": self._city} | ({} if automation is None else {"automation": automation})
        row = self._db.row(NEWEST.replace("{where}", where), params)
        return None if row is None else row["id"]

    def beginning(self, text: str, *, limit: int) -> list[str]:
        """The newest ids that begin with the text."""
        return self._ids(BEGINNING, {"low": text, "high": f"{text}~", "limit": limit})

    def ending(self, text: str, *, limit: int) -> list[str]:
        """The newest ids that end with the text, which has letters and digits alone."""
        return self._ids(ENDING, {"pattern": f"%{text}", "limit": limit})

    def retried_by(self, automation: str, run: str) -> str | None:
        """The first run that repeats it."""
        row = self._db.row(RETRIED_BY, {"city": self._city, "automation": automation, "id": run})
        return None if row is None else row["id"]

    def worktrees(self, *, limit: int) -> list[Run]:
        """Runs that have a worktree, the newest first."""
        return [RUNS.read(row) for row in self._db.rows(WORKTREES, {"city": self._city, "limit": limit})]

    def folded(self, fingerprint: str, *, after: int) -> Folded | None:
        """What the runs of the fingerprint that ended after `after` have in common; None if there are none."""
        params = {"city": self._city, "fingerprint": fingerprint, "after": after}
        row = self._db.row(FOLDED, params)
        last = self._db.rows(IDS_ALIKE, params | {"limit": 1})
        if row is None or not last:
            return None
        return Folded(row["count"], instant(row["first"]), instant(row["last"]), last[0]["id"])

    def alike(self, fingerprint: str, *, after: int, limit: int) -> list[Run]:
        """The runs of the fingerprint that ended after `after`, the last to end first."""
        params = {"city": self._city, "fingerprint": fingerprint, "after": after, "limit": limit}
        return [RUNS.read(row) for row in self._db.rows(ALIKE, params)]

    def retried(self, ids: Iterable[str]) -> set[str]:
        """Which of these runs another run repeats."""
        rows = self._db.rows(RETRIED, {"city": self._city, "ids": json.dumps(sorted(set(ids)))})
        return {row["retry_of"] for row in rows}

    def succeeded_since(self, automation: str, run: str, since: datetime) -> bool:
        """Whether a run of the automation, made after `run`, succeeded after `since`."""
        params = {"city": self._city, "automation": automation, "after": run, "since": stamp(since)}
        return self._db.row(SUCCEEDED_SINCE, params) is not None

    def _ids(self, sql: str, params: dict[str, object]) -> list[str]:
        return [row["id"] for row in self._db.rows(sql, params | {"city": self._city})]
