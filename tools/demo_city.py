"""A city to look at, for the pictures of the console: two weeks of history, agents, questions, plans and failures.

Its agent program is a script under the name of a preset's program: what it prints and reports goes the ordinary way.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from browser_city import Town, stand_in

from lamplighter.app.settings import Settings
from lamplighter.app.wiring import open_city
from lamplighter.kit.ids import oldest_id
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine import stamp
from lamplighter.store.tx import Tx

DAYS = 14
TESTS = (
    r"printf '\033[1mcollecting\033[0m 212 tests\n\033[32m211 passed\033[0m\n"
    r"\033[31mFAILED tests/test_rates.py::test_rounding\033[0m\nAssertionError: 0.1 + 0.2 != 0.3\n'; exit 1"
)
IMPORT = 'i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo "batch $i of 600: 2,000 rows"; sleep 1; done'
CITY = """
[workspace]
name = "lantern-street"

[api]
port = 0

[[notifications.destinations]]
name = "on-call"
kind = "command"
command = "cat > told.json"

[[agents]]
name = "mayor"
start_command = "sh -c 'echo The mayor looks over the work of the city.; while sleep 60; do echo All is well.; done'"

[[agents]]
name = "watchman"
start_command = "sh -c 'echo Walking Lantern Street: 12 lamps, all lit.; while read line; do echo heard $line; done'"

[[agents]]
name = "archivist"
start_command = "sh -c 'echo cannot open the archive >&2; exit 4'"
"""
_AGENT = {"preset": "claude", "mode": "full_access"}
MADE: dict[str, dict[str, Any]] = {
    "nightly-tests": {"exec": TESTS, "description": "The suite on main", "owner": "ada", "tags": ["ci"]},
    "nightly-import": {"exec": IMPORT, "timeout": "1h", "description": "Orders from the shop's export"},
    "sweep-branches": {"exec": "echo removed 3 merged branches"},
    "backup": {"exec": "echo 412 MB written", "owner": "ops", "tags": ["ops"]},
    "triage": {"agent": _AGENT | {"prompt": "Sort the new issues"}, "description": "What came in since yesterday"},
    "upgrade-deps": {"agent": _AGENT | {"prompt": "Plan the upgrade"}, "approve": "plan"},
    "review": {"agent": _AGENT | {"prompt": "Review open pull requests"}, "tags": ["ci"]},
    "digest": {"agent": _AGENT | {"prompt": "Write a digest of the week"}, "enabled": False},
    "release-notes": {"agent": _AGENT | {"prompt": "Write the release notes"}},
}
FIRES: dict[str, dict[str, Any]] = {
    "nightly-tests": {"cadence": "daily", "hour": 2, "minute": 30},
    "nightly-import": {"cadence": "daily", "hour": 4, "minute": 0},
    "sweep-branches": {"cadence": "weekly", "weekday": 0, "hour": 6, "minute": 0},
    "backup": {"cadence": "hourly", "minute": 15},
    "triage": {"cadence": "weekly", "weekday": 0, "hour": 9, "minute": 0},
    "digest": {"cadence": "weekly", "weekday": 4, "hour": 15, "minute": 0},
    "review": {"cadence": "daily", "hour": 8, "minute": 0},
}
HISTORY = {"nightly-tests": 1, "nightly-import": 1, "backup": 24, "review": 1, "triage": 2, "sweep-branches": 1}
"""How many runs of an automation there were on each day."""
ERRORS = {
    "nightly-tests": "AssertionError: 0.1 + 0.2 != 0.3", "nightly-import": "the export has no file for today",
    "backup": "No space left on device", "review": "the pull request was closed meanwhile",
    "triage": "the tracker did not answer", "sweep-branches": "",
}  # fmt: skip
ULID = "0123456789abcdefghjkmnpqrstvwxyz"
RUN_ROW = """
    INSERT INTO runs (city_id, id, automation_id, automation, action, state, trigger_id, trigger_kind,
                      trigger_event_id, definition, created_at, started_at, ended_at, deadline_at, last_activity_at,
                      cost, tokens, summary, duration_us, error, exit_code)
    VALUES (?, ?, ?, ?, ?, ?, 'schedule', 'schedule', NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
ROLLUP_ROWS = """
    INSERT INTO run_rollups (city_id, hour, automation, outcome, model,
                             runs, agent_runs, told, duration_us, cost, tokens)
    SELECT city_id, ended_at - ended_at % 3600000000, automation, state, '', COUNT(*), SUM(action = 'agent'),
           COUNT(cost), SUM(ended_at - started_at), SUM(COALESCE(cost, 0)), SUM(COALESCE(tokens, 0))
    FROM runs WHERE city_id = :city GROUP BY 1, 2, 3, 4"""


def build(root: Path) -> Town:
    """Its files; nothing runs yet."""
    command = [sys.executable, "-m", "lamplighter", "init", str(root), "--name", "lantern-street"]
    subprocess.run(command, check=True, capture_output=True)
    (root / "city.toml").write_text(CITY)
    stand_in(root)
    return Town(root)


def make(town: Town) -> None:
    for name, keys in MADE.items():
        gate = {"gate": "schedule", **FIRES[name]} if name in FIRES else {"gate": "manual"}
        body = {"name": name, **gate, **keys}
        if "agent" in keys:
            body["agent"] = keys["agent"] | {"path": str(town.root)}
        town.ask("/automations", body)


def remember(root: Path) -> None:
    """What happened in the last two weeks."""
    city, chance, now = open_city(Settings(root, root, "pictures", None, {})), random.Random(7), datetime.now(UTC)  # noqa: S311  a picture

    def rows(named: dict[str, AutomationRow]) -> Iterator[tuple[Any, ...]]:
        for day in range(DAYS, 0, -1):
            for name, times in HISTORY.items():
                if name == "sweep-branches" and day % 7:
                    continue
                for number in range(times):
                    begun = (
                        now - timedelta(days=day) + timedelta(hours=24 * number / times, minutes=chance.random() * 9)
                    )
                    if begun > now - timedelta(minutes=10):
                        continue
                    one, agent = named[name], "agent" in MADE[name]
                    took = timedelta(seconds=chance.uniform(60, 400) if agent else chance.uniform(1, 40))
                    odds = {"nightly-tests": 0.25, "backup": 0.02}.get(name, 0.05)
                    state = "failed" if chance.random() < odds else "succeeded"
                    at = [stamp(begun), stamp(begun), stamp(begun + took), stamp(begun) + 3_600_000_000, stamp(begun)]
                    cost = chance.uniform(0.05, 0.6) if agent else None
                    said, wrong = ("Nothing to do." if agent else ""), state == "failed"
                    tail = (
                        took // timedelta(microseconds=1),
                        ERRORS[name] if wrong else "",
                        None if agent else int(wrong),
                    )
                    end = "".join(chance.choice(ULID) for _ in range(6))
                    yield (
                        city.paths.city_id(), oldest_id("run", begun)[:-6] + end, one.id, one.scoped_name,
                        "agent" if agent else "exec", state, one.definition, *at, cost, cost and int(cost * 90_000),
                        said, *tail,
                    )  # fmt: skip

    def kept(tx: Tx) -> None:
        named = {one.scoped_name: one for one in tx.automations.page(limit=100)}
        tx.db.connection.executemany(RUN_ROW, list(rows(named)))  # type: ignore[attr-defined]
        tx.db.execute(ROLLUP_ROWS, {"city": city.paths.city_id()})

    try:
        city.store.transact(kept)
    finally:
        city.close()


def live(town: Town) -> None:
    """What happened, what is under way, and what needs a person."""
    make(town)
    remember(town.root)
    for name in ("triage", "release-notes", "upgrade-deps", "nightly-tests", "nightly-import", "review"):
        town.run(name)
    proof = town.connect("shop")
    town.ask("/automations", {"name": "greet-orders", "gate": "webhook", "connection": "shop", "exec": "echo hello"})
    for number in (1041, 1042, 1043):
        town.deliver("shop", proof, {"title": f"Order {number}", "order": {"number": number, "total": "19.90"}})
    for title in ("Trim the wicks in Lantern Street", "Replace the glass of lamp 7", "Count the matches"):
        town.ask("/beads", {"title": title})
    town.ask("/views", {"name": "Failed this week", "query": "state:failed since:7d"})
    wait_for(town, 4)
    town.ask("/bulk-actions", {"action": "retry", "q": "state:failed automation:nightly-tests since:1h"})


def wait_for(town: Town, items: int) -> None:
    """Until so many items are in the inbox."""
    for _ in range(120):
        if len(town.read("/inbox")["data"]) >= items:
            return
        time.sleep(1)
    raise AssertionError("what needs a person did not come up")
