"""SIGKILL at random moments under a load of runs: one process on SQLite, four workers of two nodes on PostgreSQL.

The suite's share is small. The whole of it, on both databases:
`LAMP_TEST_KILLS=300 LAMP_TEST_RUNS=1000 pytest tests/crash/test_pipeline_kills.py -n 0 -s`
"""

import json
import os
import random
from pathlib import Path

import pytest
from automation_watch import all_ended, wait_until
from crew import JobPool
from pipeline_load import Load, check, furnish, recovery, settled
from workers import checkout, on_postgres

from lamplighter.testing.processes import Children

KILLS = int(os.environ.get("LAMP_TEST_KILLS", "45"))
RUNS = int(os.environ.get("LAMP_TEST_RUNS", "150"))
LIMIT = 300 + 8 * KILLS
WITHIN = 30 + RUNS / 4
SEED = int(os.environ.get("LAMP_TEST_SEED", "5269"))


def share(kill: int) -> int:
    """How many are fired before this kill: a tenth at first, so that there is always something under way."""
    return RUNS // 10 + (RUNS - RUNS // 10) * (kill + 1) // KILLS


def further(city: Path, load: Load, events: int) -> None:
    """Until the city has come so many events further, so that the kill hits any of its steps."""
    goal = load.head() + events
    wait_until(city, lambda tx: tx.events.head() >= goal or all_ended(tx))


def told(city: Path, crew: JobPool, where: str) -> None:
    print(json.dumps({"test": "pipeline kills", "on": where, "runs": RUNS} | recovery(city, crew.deaths)))


@pytest.mark.timeout(LIMIT)
def test_one_process_on_sqlite(city: Path, processes: Children) -> None:
    furnish(city)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n[api]\nport = 0\n")
    chance, crew = random.Random(SEED), JobPool.hired(processes)
    crew.live("one", city, "up")
    crew.up("one")
    load = Load(city)
    for kill in range(KILLS):
        load.fire(share(kill) - load.fired)
        further(city, load, chance.randrange(6))
        crew.kill("one")
        crew.live("one", city, "up")
        crew.up("one")
    wait_until(city, settled, within=WITHIN)
    assert crew.stop("one") == 0
    load.close()
    told(city, crew, "sqlite, one process")
    check(city, [city], RUNS)


@pytest.mark.timeout(LIMIT)
def test_four_workers_of_two_nodes_on_postgres(
    city: Path, tmp_path: Path, postgres_url: str, processes: Children
) -> None:
    furnish(city)
    on_postgres(city, postgres_url)
    barn = checkout(city, tmp_path / "barn")
    places = {"east1": (city, "east"), "east2": (city, "east"), "west1": (barn, "west"), "west2": (barn, "west")}
    chance, crew = random.Random(SEED), JobPool.hired(processes)
    for slot, (directory, node) in places.items():
        crew.live(slot, directory, "worker", node)
    for slot in places:
        crew.up(slot)
    load = Load(city)
    for kill in range(KILLS):
        load.fire(share(kill) - load.fired)
        further(city, load, chance.randrange(6))
        slot = chance.choice(sorted(places))
        crew.kill(slot)
        directory, node = places[slot]
        crew.live(slot, directory, "worker", node)
        if chance.random() < 0.9:
            crew.up(slot)  # else the next kill may come while it starts
    for slot in places:
        crew.up(slot)
    wait_until(city, settled, within=WITHIN)
    for slot in places:
        assert crew.stop(slot) == 0
    load.close()
    told(city, crew, "postgres, four workers of two nodes")
    check(city, [city, barn], RUNS)
