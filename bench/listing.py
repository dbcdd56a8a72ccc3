"""Listing runs: the newest page of 1,000,000 runs on PostgreSQL by each filter that there is, with its plan.

`python bench/listing.py [RUNS]` prints one JSON line: for each filter the milliseconds of a page (median and slowest of
those taken), how many rows the page has, how many pages of the database were touched for it, and the server's plan.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.query import parse
from lamplighter.store.engine import Db, Params, Row
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import PostgresUrl, migrate, open_direct
from lamplighter.testing.postgres import cluster

CITY = "cty_bench"
RUNS = 1_000_000
AUTOMATIONS = 200
PAGE = 50
TAKEN = 15
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACTIVE = 400
"""The newest runs, of which each is in one of the states before its end."""

# Most succeed; every seventeenth fails, every hundredth is canceled, few end otherwise. `often` has half of all runs,
# `seldom` one in 50,000 and none of those ended well, the others share the rest.
FILL = f"""
    INSERT INTO runs (city_id, id, automation_id, automation, action, state, trigger_id, trigger_kind, trigger_event_id,
                      definition, created_at, started_at, ended_at, deadline_at, last_activity_at)
    SELECT '{CITY}', 'run_' || lpad(n::text, 12, '0'), name, name, 'exec', state, 't', 'cron', 'tev_' || n,
           '{{"name":"' || repeat('x', 300) || '"}}',
           n * 1000000::bigint, n * 1000000::bigint,
           CASE WHEN state IN ('ready', 'running') THEN NULL ELSE n * 1000000::bigint END,
           n * 1000000::bigint, n * 1000000::bigint
    FROM (SELECT n,
        CASE WHEN n % 50000 = 7 THEN 'seldom' WHEN n % 2 = 0 THEN 'often' ELSE 'aut' || n % {AUTOMATIONS} END AS name,
        CASE WHEN n > :runs - {ACTIVE} AND n % 4 = 0 THEN 'running' WHEN n > :runs - {ACTIVE} AND n % 4 = 1 THEN 'ready'
             WHEN n % 50000 = 7 OR n % 17 = 0 THEN 'failed' WHEN n % 100 = 1 THEN 'canceled'
             WHEN n % 1000 = 3 THEN 'timed_out' WHEN n % 5000 = 9 THEN 'needs_human' ELSE 'succeeded' END AS state
        FROM generate_series(1, CAST(:runs AS bigint)) AS n) AS made"""


# Every other run is of one repository, the others are of 500; a hundredth of all is of each author.
FIELDS = f"""
    INSERT INTO run_fields (city_id, path, value, run_id)
    SELECT '{CITY}', path, value, 'run_' || lpad(n::text, 12, '0')
    FROM generate_series(1, CAST(:runs AS bigint)) AS n, LATERAL (VALUES
        ('repo', CASE WHEN n % 2 = 0 THEN 'acme/often' ELSE 'acme/r' || n % 1000 END), ('author', 'a' || n % 100)
    ) AS told (path, value)"""


def filters(runs: int) -> dict[str, Callable[[Tx], list[Run]]]:
    middle = f"run_{runs // 2:012}"
    by_state: dict[str, Callable[[Tx], list[Run]]] = {
        f"state {state.value}": lambda tx, state=state: tx.runs.page(state=state, limit=PAGE) for state in RunState
    }
    both: dict[str, Callable[[Tx], list[Run]]] = {
        f"automation {name}, state {state.value}": (
            lambda tx, name=name, state=state: tx.runs.page(automation=name, state=state, limit=PAGE)
        )
        for name in ("often", "aut7", "seldom")
        for state in (RunState.SUCCEEDED, RunState.FAILED, RunState.NEEDS_HUMAN, RunState.RUNNING)
    }
    searched: dict[str, Callable[[Tx], list[Run]]] = {
        f"query {text}": lambda tx, text=text: tx.runs.search(parse(text, NOW, ["repo", "author"]), limit=PAGE)[0]
        for text in (
            "state:failed", "automation:often state:failed", "automation:seldom trigger:cron", "reason:never",
            "-state:succeeded", "rig:a* action:exec", "automation:aut* state:failed,canceled",
            "payload.repo:acme/often", "payload.repo:acme/r7", "payload.repo:acme/nothing", "payload.author:a7",
            "payload.repo:acme/r7 state:failed", "payload.repo:acme/often state:failed automation:often",
            "payload.repo:acme/r7 payload.author:a7 state:failed automation:aut7",
        )
    }  # fmt: skip
    return {
        "none": lambda tx: tx.runs.page(limit=PAGE),
        "before": lambda tx: tx.runs.page(before=middle, limit=PAGE),
        "automation often": lambda tx: tx.runs.page(automation="often", limit=PAGE),
        "automation aut7": lambda tx: tx.runs.page(automation="aut7", limit=PAGE),
        "automation seldom": lambda tx: tx.runs.page(automation="seldom", limit=PAGE),
        "automation often, before": lambda tx: tx.runs.page(automation="often", before=middle, limit=PAGE),
        **by_state,
        **both,
        **searched,
    }


class Explaining:
    """Asks for the plan of what is asked, instead of asking it."""

    def __init__(self, real: Db) -> None:
        self._real = real
        self.dialect = real.dialect
        self.plans: list[Any] = []

    def rows(self, sql: str, params: Params) -> list[Row]:
        [row] = self._real.rows("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql, params)
        self.plans.append(row["QUERY PLAN"][0]["Plan"])
        return []

    def row(self, _sql: str, _params: Params) -> Row | None:
        """How far a query without a full page looked: as far as the plan that was asked for."""
        return None


def plan_of(direct: DirectStore, ask: Callable[[Tx], list[Run]]) -> tuple[str, int]:
    """The nodes of the plan, outermost first, and how many pages of the database were touched."""

    def explain(tx: Tx) -> Any:
        explaining = Explaining(tx.db)
        ask(Tx(explaining, CITY))  # type: ignore[arg-type]  # it only reads rows
        return explaining.plans[0]

    plan = direct.read(explain)
    return _nodes(plan), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def _nodes(plan: dict[str, Any]) -> str:
    name = " ".join([plan["Node Type"], *([plan["Index Name"]] if "Index Name" in plan else [])])
    if plan.get("Scan Direction") == "Backward":
        name += " backward"
    if "Filter" in plan:
        name += f" with a filter on {plan['Rows Removed by Filter']} more rows"
    return " ← ".join([name, *(_nodes(part) for part in plan.get("Plans", []))])


def measure(direct: DirectStore, ask: Callable[[Tx], list[Run]]) -> dict[str, Any]:
    taken = []
    for _ in range(TAKEN):
        began = time.perf_counter()
        page = direct.read(ask)
        taken.append((time.perf_counter() - began) * 1000)
    plan, touched = plan_of(direct, ask)
    return {
        "ms": {"p50": round(statistics.median(taken), 2), "slowest": round(max(taken), 2)},
        "rows": len(page),
        "pages_touched": touched,
        "plan": plan,
    }


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with cluster() as server:
        place = PostgresUrl(server.database(), server.home)
        migrate(place)
        direct = open_direct(place, CITY)
        try:
            direct.transact(lambda tx: tx.db.execute(FILL, {"runs": runs}))
            direct.transact(lambda tx: tx.db.execute(FIELDS, {"runs": runs}))
            direct.transact(lambda tx: tx.db.execute("ANALYZE runs, run_fields", {}))
            listed = {name: measure(direct, ask) for name, ask in filters(runs).items()}
        finally:
            direct.close()
    print(json.dumps({"bench": "listing", "store": "postgres", "runs": runs, "page": PAGE, "by": listed}), flush=True)


if __name__ == "__main__":
    main()
