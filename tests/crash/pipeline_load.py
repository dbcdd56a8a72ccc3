"""A load of runs, commands and scripted agents, fired from outside; and the look at what became of them."""

import json
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from automation_watch import all_ended, place_of, rows

from lamplighter.adapters.files.city import CityPaths
from lamplighter.adapters.processes.table import all_processes
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import acting
from lamplighter.services.rules import Rules
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct

# It reports over HTTP, and again until it is answered: who served it may be dead just then, and others or the next
# one answer on the same port.
AGENT = """
echo "$LAMP_RUN_ID" >> "$LAMP_CITY/prompts.log"
n=0
until curl -sf -o /dev/null --noproxy '*' -X POST "$LAMP_API_URL/api/v1/runs/$LAMP_RUN_ID/complete" \\
  -H "Authorization: Bearer $(cat "$LAMP_RUN_TOKEN_FILE")" \\
  -d '{"completion_id": "done", "outcome": "succeeded", "summary_markdown": "Lit."}'
do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
"""
PROVIDER = '\n[providers.scripted]\ncommand = "sh"\nargs = ["agent.sh"]\n'
EXEC = {"exec": 'echo "$LAMP_RUN_ID" >> "$LAMP_CITY/commands.log"'}
PROMPT = {"agent": {"prompt": "Go.", "preset": "scripted"}}


def furnish(city: Path) -> None:
    (city / "agent.sh").write_text(AGENT, encoding="utf-8")
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(PROVIDER)


class Load:
    """Manual runs of as many automations, so that none waits for another; every third is a command."""

    def __init__(self, city: Path) -> None:
        self._clock = SystemClock()
        self._ids, self._rules = IdSource(self._clock), Rules(ZoneInfo("UTC"))
        self._store = open_direct(place_of(city), CityPaths(city).city_id())
        self.fired = 0

    def fire(self, count: int) -> None:
        for _ in range(count):
            self.one(EXEC if self.fired % 3 == 0 else PROMPT)

    def one(self, action: dict[str, Any]) -> str:
        name = f"load{self.fired}"
        ctx = acting("load", self._clock.now())
        body = {"name": name, "gate": "manual"} | action
        self._store.transact(editing.create, body, rules=self._rules, ctx=ctx)
        self.fired += 1
        wanted = firing.ByHand(name)
        return self._store.transact(firing.run_by_hand, wanted, rules=self._rules, ctx=ctx).run

    def head(self) -> int:
        return self._store.read(lambda tx: tx.events.head())

    def close(self) -> None:
        self._store.close()


def quiet(tx: Tx) -> bool:
    """All has ended, and nothing that is due waits any more; every session is on record, and over."""
    left = (
        "SELECT 1 AS found FROM outbox WHERE state IN ('pending', 'claimed') AND kind <> 'stop_session'",
        "SELECT 1 AS found FROM sessions WHERE ended_at IS NULL",
        "SELECT 1 AS found FROM runs WHERE action = 'agent' AND session_id IS NULL",
    )
    return all_ended(tx) and all(tx.db.row(sql, {}) is None for sql in left)


def check(city: Path, directories: Iterable[Path], count: int) -> None:
    """Every run ended well, once: one session, one prompt, one command each; triggers settled; no attempt was spent."""
    bad = rows(city, "SELECT id, state, reason, error FROM runs WHERE state <> 'succeeded'")
    assert bad == []
    assert len(rows(city, "SELECT id FROM runs")) == count
    agents = {row["id"] for row in rows(city, "SELECT id FROM runs WHERE action = 'agent'")}
    commands = {row["id"] for row in rows(city, "SELECT id FROM runs WHERE action = 'exec'")}
    assert _said(directories, "prompts.log") == Counter(agents)
    assert _said(directories, "commands.log") == Counter(commands)
    sessions = Counter(row["run_id"] for row in rows(city, "SELECT run_id FROM sessions"))
    assert sessions == Counter(agents)
    for kind in ("session_created", "prompt_sent", "completion"):
        told = rows(city, f"SELECT run_id FROM run_events WHERE type = '{kind}'")
        assert Counter(row["run_id"] for row in told) == Counter(agents), kind
    assert {row["status"] for row in rows(city, "SELECT DISTINCT status FROM trigger_events")} == {"completed"}
    assert rows(city, "SELECT id FROM beads WHERE type = 'run' AND status <> 'closed'") == []
    spent = rows(city, "SELECT kind, attempts, last_error FROM outbox WHERE attempts > 1 OR last_error <> ''")
    assert spent == []  # the dead were known by their proof of life: a claim or lease that ran out costs an attempt
    for directory in directories:
        assert leftovers(directory) == []


def outcome(city: Path, directories: Iterable[Path], fired: int) -> dict[str, Any]:
    """What came of the runs, by what commands and agents wrote: how many were lost, and how many done twice."""
    directories = list(directories)
    runs = {row["id"]: row["action"] for row in rows(city, "SELECT id, action FROM runs")}
    done = {"agent": _said(directories, "prompts.log"), "exec": _said(directories, "commands.log")}
    return {
        "fired": fired,
        "succeeded": len(rows(city, "SELECT id FROM runs WHERE state = 'succeeded'")),
        "lost": fired - len(runs) + sum(run not in done[action] for run, action in runs.items()),
        "doubled": sum(n > 1 for said in done.values() for n in said.values()),
        "processes_left": sum(len(leftovers(directory)) for directory in directories),
    }


def leftovers(directory: Path) -> list[int]:
    """Processes of runs that live on."""
    mark = f"LAMP_CITY={directory}".encode()
    found = []
    for pid in all_processes():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environ.split(b"\0") and b"LAMP_RUN_ID=" in environ:
            found.append(pid)
    return found


def recovery(city: Path, deaths: dict[int, float]) -> dict[str, Any]:
    """How long after each kill the death was noticed, and what the dead one had under way was taken up; in ms."""
    lost = rows(city, "SELECT subject, at, payload FROM events WHERE type = 'owner.lost'")
    died = {row["subject"]: deaths[json.loads(row["payload"])["pid"]] for row in lost
            if json.loads(row["payload"])["pid"] in deaths}  # fmt: skip
    noticed = [row["at"] / 1e6 - died[row["subject"]] for row in lost if row["subject"] in died]
    holders: dict[str, str] = {}
    adopted = []
    for row in rows(city, "SELECT run_id, type, at, data FROM run_events WHERE data LIKE '%\"owner\"%' ORDER BY at"):
        before, holders[row["run_id"]] = holders.get(row["run_id"]), json.loads(row["data"])["owner"]
        if row["type"] == "run_adopted" and before in died:
            adopted.append(row["at"] / 1e6 - died[before])
    return {"kills": len(deaths), "noticed_ms": _spread(noticed), "taken_up_ms": _spread(adopted)}


def _spread(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {"count": 0}
    ranked = sorted(1000 * one for one in seconds)
    p99 = ranked[min(int(len(ranked) * 0.99), len(ranked) - 1)]
    return {"count": len(ranked), "p50": round(statistics.median(ranked), 1), "p99": round(p99, 1),
            "most": round(ranked[-1], 1)}  # fmt: skip


def _said(directories: Iterable[Path], name: str) -> Counter[str]:
    files = [directory / name for directory in directories]
    return Counter(word for file in files if file.exists() for word in file.read_text().split())
