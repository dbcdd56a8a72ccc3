"""SIGKILL at random moments while automations fire and run: no slot is lost, none is done twice, every run ends."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from automation_watch import look, rows, wait_until
from crew import JobPool
from lamp_program import here

from lamplighter.adapters.files.city import CityPaths
from lamplighter.kit.clock import SystemClock
from lamplighter.services.context import acting
from lamplighter.store.tx import Tx
from lamplighter.store.url import open_direct, parse_store_url
from lamplighter.testing.processes import Children

KILLS = 200
TIMED = 4


def define(city: Path, name: str, text: str) -> None:
    folder = city / ".gc" / "formulas" / "automations" / name
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(f"[automation]\n{text}", encoding="utf-8")


def furnish(city: Path) -> None:
    """Timed ones that note their run, and one that notes every event it was given, in order."""
    for number in range(TIMED):
        text = 'exec = "echo $LAMP_RUN_ID >> timed.log"\ngate = "cooldown"\ninterval = "200ms"\n'
        define(city, f"timed{number}", text)
    text = 'exec = "cat $LAMP_TRIGGER_FILE >> heard.log; echo >> heard.log"\ngate = "event"\non = "load.step"\n'
    define(city, "hears", text)


class Emitter:
    def __init__(self, city: Path) -> None:
        paths = CityPaths(city)
        self._store = open_direct(parse_store_url("", paths.runtime), paths.city_id())
        self.count = 0

    def emit(self, count: int) -> None:
        now = SystemClock().now()
        facts = [acting("load", now).event("load.step", payload={"n": self.count + n}) for n in range(count)]

        def append(tx: Tx) -> None:
            for fact in facts:
                tx.events.append(fact)

        self._store.transact(append)
        self.count += count

    def close(self) -> None:
        self._store.close()


def all_heard(tx: Tx) -> bool:
    """Every event was dealt with, and nothing of it is under way."""
    waiting = tx.db.row("SELECT 1 AS found FROM triggers WHERE kind = 'event' AND next_due_at IS NOT NULL", {})
    hears = tx.automations.named("hears")
    assert hears is not None
    last = tx.events.after_of_type("load.step", tx.triggers.of(hears.id)[0].state.event_cursor)
    return waiting is None and not last and not tx.runs.active_of(hears.id)


def nothing_under_way(tx: Tx) -> bool:
    row = tx.db.row("SELECT 1 AS found FROM runs WHERE state IN ('queued', 'enriching', 'ready', 'running')", {})
    return row is None


@pytest.mark.timeout(900)
def test_killed_again_and_again_nothing_is_lost_and_nothing_is_done_twice(city: Path, processes: Children) -> None:
    furnish(city)
    chance = random.Random(5267)
    emitter = Emitter(city)
    crew = JobPool.hired(processes)
    for _ in range(KILLS):
        crew.live("one", city, "up")
        crew.up("one")
        emitter.emit(chance.randrange(1, 4))
        _pass_some_commits(city, chance)
        crew.kill("one")
    crew.live("one", city, "up")
    crew.up("one")
    for name in ("timed0", "timed1", "timed2", "timed3"):  # else one may fire just before the stop and rightly wait
        assert here("--city", str(city), "automation", "disable", name).code == 0
    wait_until(city, all_heard)
    wait_until(city, nothing_under_way)
    assert crew.stop("one") == 0
    _check_runs(city)
    _check_events(city, emitter.count)
    emitter.close()


def _pass_some_commits(city: Path, chance: random.Random) -> None:
    """Let the daemon come as far as a random number of further events, so that the kill hits any of its steps."""
    goal = look(city, lambda tx: tx.events.head()) + chance.randrange(6)
    wait_until(city, lambda tx: tx.events.head() >= goal)


def _check_runs(city: Path) -> None:
    runs = rows(city, "SELECT id, automation, state, reason, lease_owner FROM runs")
    assert len(runs) > KILLS
    unfinished = [run for run in runs if run["state"] not in {"succeeded", "failed"}]
    assert unfinished == []
    assert all(run["reason"] for run in runs if run["state"] == "failed")
    assert {run["reason"] for run in runs if run["state"] == "failed"} <= {"interrupted"}  # by the stop at the end
    done = Counter((city / "timed.log").read_text().split())
    assert set(done.values()) == {1}
    timed = {run["id"] for run in runs if run["automation"] != "hears" and run["state"] == "succeeded"}
    assert timed <= set(done)
    slots = rows(city, "SELECT automation, slot FROM trigger_events WHERE slot IS NOT NULL AND status <> 'skipped'")
    assert max(Counter((row["automation"], row["slot"]) for row in slots).values()) == 1
    assert rows(city, "SELECT id FROM beads WHERE type = 'run' AND status <> 'closed'") == []
    assert len(rows(city, "SELECT id FROM beads WHERE type = 'run'")) == len(runs)
    assert rows(city, "SELECT id FROM outbox WHERE state IN ('pending', 'claimed')") == []
    assert list((city / ".gc" / "commands").iterdir()) == []


def _check_events(city: Path, count: int) -> None:
    heard = []
    for line in (city / "heard.log").read_text().splitlines():
        if line:
            heard += [event["payload"]["n"] for event in json.loads(line)["events"]]
    assert heard == list(range(count))
