"""Storms of SIGKILL at random moments under a load of runs, in any size, and what came of the runs."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automation_watch import all_ended, rows, wait_until
from crew import JobPool
from pipeline_load import Load, check, furnish, outcome, quiet, recovery
from workers import checkout, on_postgres

from lamplighter.testing.processes import Children

SEED = 5269


@dataclass(frozen=True)
class Storm:
    """So many kills while so many runs are fired."""

    kills: int
    runs: int
    seed: int = SEED

    @property
    def within(self) -> float:
        """Seconds for the last runs to end."""
        return 60 + self.runs / 4

    def share(self, kill: int) -> int:
        """How many are fired before this kill: a tenth at first, so that there is always something under way."""
        first = self.runs // 10
        return first + (self.runs - first) * (kill + 1) // self.kills


def one_process_on_sqlite(city: Path, processes: Children, storm: Storm, counts: dict[str, Any]) -> None:
    """`counts` takes what came of the runs, before it is judged."""
    furnish(city)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write("\n[api]\nport = 0\n")
    chance, crew = random.Random(storm.seed), JobPool.hired(processes)
    crew.live("one", city, "up")
    crew.up("one")
    load = Load(city)
    for kill in range(storm.kills):
        load.fire(storm.share(kill) - load.fired)
        _further(city, load, chance.randrange(6))
        crew.kill("one")
        crew.live("one", city, "up")
        crew.up("one")
    _finish([city], crew, load, storm, counts)


def four_workers_on_postgres(
    city: Path, barn: Path, url: str, processes: Children, storm: Storm, counts: dict[str, Any]
) -> None:
    """Of two nodes; `barn` is where the second one's directory is made."""
    furnish(city)
    on_postgres(city, url)
    checkout(city, barn)
    places = {"east1": (city, "east"), "east2": (city, "east"), "west1": (barn, "west"), "west2": (barn, "west")}
    chance, crew = random.Random(storm.seed), JobPool.hired(processes)
    for slot, (directory, node) in places.items():
        crew.live(slot, directory, "worker", node)
    for slot in places:
        crew.up(slot)
    load = Load(city)
    for kill in range(storm.kills):
        load.fire(storm.share(kill) - load.fired)
        _further(city, load, chance.randrange(6))
        slot = chance.choice(sorted(places))
        crew.kill(slot)
        directory, node = places[slot]
        crew.live(slot, directory, "worker", node)
        if chance.random() < 0.9:
            crew.up(slot)  # else the next kill may come while it starts
    for slot in places:
        crew.up(slot)
    _finish([city, barn], crew, load, storm, counts)


def _further(city: Path, load: Load, events: int) -> None:
    """Until the city has come so many events further, so that the kill hits any of its steps."""
    goal = load.head() + events
    wait_until(city, lambda tx: tx.events.head() >= goal or all_ended(tx))


def _finish(directories: list[Path], crew: JobPool, load: Load, storm: Storm, counts: dict[str, Any]) -> None:
    city, slots = directories[0], sorted(crew.lit)
    try:
        wait_until(city, quiet, within=storm.within)
        left = [crew.stop(slot) for slot in slots]
    finally:
        load.close()
        counts |= outcome(city, directories, load.fired) | recovery(city, crew.deaths)
        counts["kills"] = storm.kills
        counts["not_ended"] = len(rows(city, "SELECT id FROM runs WHERE ended_at IS NULL"))
    assert left == [0] * len(slots)
    check(city, directories, storm.runs)
