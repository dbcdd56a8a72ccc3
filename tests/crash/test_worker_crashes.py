"""On PostgreSQL a worker dies at each named point of the pipeline; others of its node and of another one go on."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from automation_watch import look, rows, wait_until
from crew import JobPool
from pipeline_load import EXEC, PROMPT, Load, check, furnish, quiet
from test_agent_crashes import POINTS as AGENT_POINTS
from test_automation_crashes import COOK_POINTS, EXEC_POINTS, OUTSIDE_POINTS, SCRIPT
from workers import checkout, on_postgres

from lamplighter.kit.crash import CrashPoint
from lamplighter.store.tx import Tx
from lamplighter.testing.processes import Children

FIRING = tuple(point for point in EXEC_POINTS if point.startswith("fire."))
STORE = (CrashPoint.STORE_BEFORE_COMMIT, CrashPoint.STORE_AFTER_COMMIT)
FORMULA = {"formula": "feature", "vars": {"what": "x"}, "pool": "crew"}
TIMED = '[automation]\nexec = "echo $LAMP_RUN_ID >> $LAMP_CITY/commands.log"\ngate = "cooldown"\ninterval = "1h"\n'


@pytest.fixture
def town(city: Path, postgres_url: str) -> Path:
    furnish(city)
    on_postgres(city, postgres_url)
    return city


@pytest.fixture
def barn(town: Path, tmp_path: Path) -> Path:
    return checkout(town, tmp_path / "barn")


@pytest.fixture
def crew(processes: Children) -> JobPool:
    return JobPool.hired(processes)


def others(crew: JobPool, town: Path, barn: Path) -> None:
    """Three more workers: one on the dead one's node, two on another."""
    for slot, directory, node in (("second", town, "east"), ("third", barn, "west"), ("fourth", barn, "west")):
        crew.live(slot, directory, "worker", node)
    for slot in ("second", "third", "fourth"):
        crew.up(slot)


def fire(town: Path, action: dict[str, Any]) -> str:
    load = Load(town)
    try:
        return load.one(action)
    finally:
        load.close()


def dies(crew: JobPool, town: Path, point: str, kind: str = "worker") -> None:
    crew.live("first", town, kind, "east", point)
    assert crew.crashed("first") == -signal.SIGKILL


def cooked(tx: Tx) -> bool:
    return any(row.wisp for row in tx.runs.page())


PIPELINE = [(EXEC, point) for point in EXEC_POINTS if point not in FIRING] + [(PROMPT, point) for point in AGENT_POINTS]


@pytest.mark.parametrize(
    ("action", "point"), PIPELINE, ids=lambda one: one.value if isinstance(one, CrashPoint) else ""
)
def test_a_run_is_done_once(action: dict[str, Any], point: CrashPoint, town: Path, barn: Path, crew: JobPool) -> None:
    fire(town, action)
    dies(crew, town, point)
    others(crew, town, barn)
    wait_until(town, quiet)
    check(town, [town, barn], 1)


@pytest.mark.parametrize("passes", [8, 20])
@pytest.mark.parametrize("point", STORE)
def test_before_and_after_any_commit(point: CrashPoint, passes: int, town: Path, barn: Path, crew: JobPool) -> None:
    load = Load(town)
    load.fire(6)
    load.close()
    dies(crew, town, f"{point.value}:{passes}")
    others(crew, town, barn)
    wait_until(town, quiet)
    check(town, [town, barn], 6)


@pytest.mark.parametrize("point", FIRING)
def test_a_controller_that_dies_while_it_fires_beside_workers(
    point: CrashPoint, town: Path, barn: Path, crew: JobPool
) -> None:
    others(crew, town, barn)
    folder = town / ".gc" / "formulas" / "automations" / "once"
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(TIMED, encoding="utf-8")
    dies(crew, town, point.value, "up")
    crew.live("first", town, "up")
    crew.up("first")
    wait_until(town, quiet)
    check(town, [town, barn], 1)


@pytest.mark.parametrize("point", COOK_POINTS)
def test_a_formula_is_cooked_once(point: CrashPoint, town: Path, barn: Path, crew: JobPool) -> None:
    fire(town, FORMULA)
    dies(crew, town, point)
    others(crew, town, barn)
    wait_until(town, cooked)
    assert len(rows(town, "SELECT id FROM beads WHERE type = 'molecule'")) == 1


@pytest.mark.parametrize("point", OUTSIDE_POINTS)
def test_a_wisp_in_an_outside_store_is_made_once(point: CrashPoint, town: Path, crew: JobPool) -> None:
    script = town / "beads.sh"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    with (town / "city.toml").open("a", encoding="utf-8") as file:
        file.write('\n[beads]\nprovider = "exec:./beads.sh"\n')
    run = fire(town, FORMULA)
    dies(crew, town, point)
    crew.live("second", town, "worker", "east")
    wait_until(town, cooked)
    row = look(town, lambda tx: tx.runs.get(run))
    assert row is not None
    kept = json.loads((town / "beads.json").read_text())
    assert [bead["id"] for bead in kept.values() if f"run:{run}" in bead["labels"]] == [row.wisp]
