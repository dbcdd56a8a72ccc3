"""A run by hand: worked in the command's own process without a daemon, left to the daemon where one runs."""

import json
import sys
from pathlib import Path

from automation_watch import all_ended, look, rows, wait_until

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.inline_run import fired
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations.operations import RUN_AUTOMATION, RunAutomation
from lamplighter.testing.processes import Children


def define(city: Path, name: str, text: str) -> None:
    folder = city / ".gc" / "formulas" / "automations" / name
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(f"[automation]\n{text}", encoding="utf-8")


def opened(city: Path, environment: dict[str, str]) -> OpenCity:
    clock = SystemClock()
    settings = Settings(cwd=city, city=city, actor="ann", run=None, env=environment)
    return OpenCity(settings, CityPaths(city), clock, IdSource(clock))


def test_without_a_daemon_the_command_works_its_own_run_and_nothing_else(
    city: Path, environment: dict[str, str]
) -> None:
    define(city, "greet", 'exec = "echo hello"\ngate = "manual"\n')
    define(city, "tidy", 'exec = "true"\ngate = "cooldown"\ninterval = "1h"\n')
    town = opened(city, environment)
    _, executed_here = fired(town, RUN_AUTOMATION, RunAutomation("greet"))
    town.close()
    (row,) = look(city, lambda tx: tx.runs.page())
    assert (row.automation, row.state, row.output_tail) == ("greet", "succeeded", "hello\n")
    assert executed_here
    assert rows(city, "SELECT id FROM owners") == []


def test_with_a_daemon_the_run_is_left_to_it(city: Path, environment: dict[str, str], processes: Children) -> None:
    define(city, "greet", 'exec = "echo hello"\ngate = "manual"\n')
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    while not child.line().startswith("The lamps are lit"):
        assert child.process.poll() is None
    town = opened(city, environment)
    _, executed_here = fired(town, RUN_AUTOMATION, RunAutomation("greet"))
    town.close()
    assert not executed_here
    wait_until(city, all_ended)
    (row,) = look(city, lambda tx: tx.runs.page())
    assert (row.state, row.output_tail) == ("succeeded", "hello\n")


def test_with_a_daemon_its_surroundings_are_those_of_a_check(
    city: Path,
    environment: dict[str, str],
    processes: Children,
    lamp,  # type: ignore[no-untyped-def]  # noqa: ANN001
) -> None:
    define(city, "asked", 'exec = "true"\ngate = "condition"\ncheck = \'test "$ASKED_BY" = daemon\'\n')
    assert lamp("automation", "check", "asked").returncode == 1
    assert lamp("pause").returncode == 0
    env = environment | {"ASKED_BY": "daemon"}
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=env)
    while not child.line().startswith("The lamps are lit"):
        assert child.process.poll() is None
    (found,) = json.loads(lamp("automation", "check", "asked", "--json").stdout)
    assert found["reason"] == "paused: nothing fires"
    told = lamp("automation", "explain", "asked").stdout
    assert "is due" in told


def test_what_a_running_command_printed_so_far_is_shown_and_its_end_is_waited_for(
    city: Path,
    environment: dict[str, str],
    processes: Children,
    lamp,  # type: ignore[no-untyped-def]  # noqa: ANN001
) -> None:
    define(city, "long", 'exec = "echo begun; while [ ! -e go ]; do sleep 0.1; done"\ngate = "manual"\n')
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    while not child.line().startswith("The lamps are lit"):
        assert child.process.poll() is None
    run = json.loads(lamp("automation", "run", "long", "--json").stdout)["id"]
    wait_until(city, lambda _tx: lamp("run", "logs", run).stdout == "begun\n")
    (city / "go").touch()
    done = lamp("run", "watch", run)
    assert done.returncode == 0
    assert "begun" in done.stdout
    assert f"Run {run[-6:]} succeeded" in done.stdout


def test_a_single_pass_fires_nothing_and_works_on_no_run(city: Path, lamp) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    define(city, "tidy", 'exec = "echo done"\ngate = "cooldown"\ninterval = "1h"\n')
    define(city, "asked", 'exec = "echo done"\ngate = "condition"\ncheck = "touch asked"\n')
    assert lamp("start").returncode == 0
    assert look(city, lambda tx: tx.runs.page()) == []
    assert not (city / "asked").exists()


def test_stopping_the_city_interrupts_what_runs(
    city: Path,
    environment: dict[str, str],
    processes: Children,
    lamp,  # type: ignore[no-untyped-def]  # noqa: ANN001
) -> None:
    define(city, "long", 'exec = "echo begun; sleep 4799"\ngate = "cooldown"\ninterval = "1h"\n')
    processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    wait_until(city, lambda tx: any(row.state == "running" for row in tx.runs.page()))
    assert lamp("stop").returncode == 0
    (row,) = look(city, lambda tx: tx.runs.page())
    assert (row.state, row.reason) == ("failed", "interrupted")


def test_a_new_file_takes_effect_without_a_restart(
    city: Path, environment: dict[str, str], processes: Children
) -> None:
    child = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    while not child.line().startswith("The lamps are lit"):
        assert child.process.poll() is None
    define(city, "late", 'exec = "echo here"\ngate = "cooldown"\ninterval = "1h"\n')
    wait_until(city, all_ended)
    (row,) = look(city, lambda tx: tx.runs.page())
    assert row.automation == "late"
