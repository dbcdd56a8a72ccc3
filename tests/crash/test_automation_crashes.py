"""A daemon killed at each named point of firing and running, then the next one: each slot is one run, done once."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from automation_watch import all_ended, look, rows, wait_until

from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Child, Children

EXEC_POINTS = (
    CrashPoint.FIRE_AFTER_TRIGGER_EVENT,
    CrashPoint.FIRE_AFTER_RUN,
    CrashPoint.FIRE_AFTER_COMMIT,
    CrashPoint.RUN_AFTER_START,
    CrashPoint.COMMAND_BEFORE_LAUNCH,
    CrashPoint.COMMAND_AFTER_LAUNCH,
    CrashPoint.RUN_BEFORE_END,
    CrashPoint.RUN_AFTER_END,
)
COOK_POINTS = (CrashPoint.RUN_AFTER_COOKED,)
OUTSIDE_POINTS = (CrashPoint.COOK_BEFORE_SEND, CrashPoint.COOK_AFTER_SEND)
SCRIPT = Path(__file__).parent.parent / "contract" / "exec_beads.py"

EXEC = '[automation]\nexec = "echo $LAMP_RUN_ID >> done.log"\ngate = "cooldown"\ninterval = "1h"\n'
COOK = '[automation]\nformula = "feature"\ngate = "cooldown"\ninterval = "1h"\npool = "crew"\nvars = { what = "x" }\n'


def define(city: Path, name: str, text: str) -> None:
    folder = city / ".gc" / "formulas" / "automations" / name
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(text, encoding="utf-8")


def crash(processes: Children, city: Path, environment: dict[str, str], point: CrashPoint, passes: int = 0) -> None:
    env = environment | {"LAMP_CRASH_AT": f"{point.value}:{passes}"}
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=env)
    assert child.process.wait(timeout=180) == -signal.SIGKILL


def start(processes: Children, city: Path, environment: dict[str, str]) -> Child:
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    while not child.line().startswith("The lamps are lit"):
        assert child.process.poll() is None
    return child


@pytest.mark.parametrize("point", EXEC_POINTS)
def test_an_exec_run_is_done_once(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children
) -> None:
    define(city, "once", EXEC)
    crash(processes, city, environment, point)
    start(processes, city, environment)
    assert_done_once(city)


def test_a_run_that_a_command_fired_is_done_once(city: Path, environment: dict[str, str], processes: Children) -> None:
    """The daemon did not fire it, so it takes it from the outbox, and dies just after."""
    define(city, "once", EXEC.replace('gate = "cooldown"\ninterval = "1h"', 'gate = "manual"'))
    env = environment | {"LAMP_CRASH_AT": CrashPoint.ITEM_AFTER_CLAIM.value}
    daemon = start(processes, city, env)
    line = (sys.executable, "-m", "lamplighter", "automation", "run", "once", "--city", str(city))
    assert processes.start(*line, env=environment).process.wait(timeout=180) == 0
    assert daemon.process.wait(timeout=180) == -signal.SIGKILL
    start(processes, city, environment)
    assert_done_once(city)


def assert_done_once(city: Path) -> None:
    wait_until(city, all_ended)
    (run,) = look(city, lambda tx: tx.runs.page())
    assert (run.state, run.exit_code) == ("succeeded", 0)
    assert (city / "done.log").read_text().split() == [run.id]
    assert [row["status"] for row in rows(city, "SELECT status FROM trigger_events")] == ["completed"]
    beads = rows(city, "SELECT status FROM beads WHERE type = 'run'")
    assert [row["status"] for row in beads] == ["closed"]
    assert len(rows(city, "SELECT seq FROM events WHERE type = 'automation.fired'")) == 1
    assert len(rows(city, "SELECT seq FROM events WHERE type = 'automation.completed'")) == 1


@pytest.mark.parametrize("point", COOK_POINTS)
def test_a_formula_is_cooked_once(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children
) -> None:
    define(city, "build", COOK)
    crash(processes, city, environment, point)
    start(processes, city, environment)
    wait_until(city, lambda tx: any(row.wisp for row in tx.runs.page()))
    assert len(rows(city, "SELECT id FROM beads WHERE type = 'molecule'")) == 1
    assert len(rows(city, "SELECT id FROM runs")) == 1


@pytest.mark.parametrize("point", OUTSIDE_POINTS)
def test_a_wisp_in_an_outside_store_is_made_once(
    point: CrashPoint, city: Path, environment: dict[str, str], processes: Children
) -> None:
    script = city / "beads.sh"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[beads]\nprovider = "exec:./beads.sh"\n')
    define(city, "build", COOK)
    crash(processes, city, environment, point)
    start(processes, city, environment)
    wait_until(city, lambda tx: any(row.wisp for row in tx.runs.page()))
    (run,) = look(city, lambda tx: tx.runs.page())
    kept = json.loads((city / "beads.json").read_text())
    roots = [bead for bead in kept.values() if f"run:{run.id}" in bead["labels"]]
    assert [bead["id"] for bead in roots] == [run.wisp]
    assert "pool:crew" in roots[0]["labels"]


def test_a_command_outlives_a_killed_daemon_and_its_end_is_read_from_disk(
    city: Path, environment: dict[str, str], processes: Children
) -> None:
    """The command waits for a FIFO, so it is surely under way when the daemon dies, and ends while none runs."""
    os.mkfifo(city / "go")
    define(city, "slow", EXEC.replace("echo", "cat go > /dev/null; exit_with=7; echo").replace("log", "log; exit 7"))
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    wait_until(city, lambda tx: any(row.state == "running" for row in tx.runs.page()))
    with (city / "go").open("w"):  # opens once the command has opened its end
        child.kill()
    (run,) = look(city, lambda tx: tx.runs.page())
    assert run.state == "running"
    start(processes, city, environment)
    wait_until(city, all_ended)
    (run,) = look(city, lambda tx: tx.runs.page())
    assert (run.state, run.reason, run.exit_code) == ("failed", "exit_7", 7)
    assert (city / "done.log").read_text().split() == [run.id]
    events = look(city, lambda tx: [event.type for event in tx.runs.events(run.id)])
    assert "run_adopted" in events
