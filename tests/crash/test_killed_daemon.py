"""SIGKILL under a write load: what was acknowledged is there, and the next start takes over."""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from crew import JobPool

from lamplighter.adapters.files.city import CityPaths
from lamplighter.domain.events import EventFilter
from lamplighter.store.tx import DirectStore, Tx
from lamplighter.store.url import open_direct, parse_store_url
from lamplighter.testing.processes import Child, Children

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]
SCRIPT = Path(__file__).with_name("load_child.py")
KILLS = 100
CROWD_KILLS = 10


def events_of(city: Path, event_type: str) -> list[str | None]:
    store = _open(city)
    try:
        return [event.subject for event in store.read(_of_type, event_type)]
    finally:
        store.close()


def _open(city: Path) -> DirectStore:
    paths = CityPaths(city)
    return open_direct(parse_store_url("", paths.runtime), paths.city_id())


def _of_type(tx: Tx, event_type: str) -> list[object]:
    return list(tx.events.latest(EventFilter(type=event_type), limit=1_000_000))


class Acknowledged:
    """Reads what a load acknowledges, as it comes, so that the load never waits for its reader."""

    def __init__(self, child: Child) -> None:
        self.subjects: list[str] = []
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(child,), daemon=True)
        self._thread.start()

    def wait_for(self, further: int) -> None:
        """Until so many more are acknowledged: the load is really under way."""
        with self._more:
            goal = len(self.subjects) + further
            assert self._more.wait_for(lambda: len(self.subjects) >= goal, timeout=180)

    def finish(self) -> list[str]:
        self._thread.join(timeout=180)
        return self.subjects

    def _read(self, child: Child) -> None:
        while line := child.line():
            with self._more:
                self.subjects.append(line)
                self._more.notify_all()


def start_daemon(processes: Children, city: Path, environment: dict[str, str]) -> tuple[Child, list[str]]:
    """`lamp up`, and what it said until the lamps were lit."""
    daemon = processes.start(sys.executable, "-m", "lamplighter", "up", "--city", str(city), env=environment)
    said = [daemon.line()]
    while not said[-1].startswith("The lamps are lit"):
        assert daemon.process.poll() is None or said[-1], said
        said.append(daemon.line())
    return daemon, said


@pytest.mark.timeout(900)
def test_a_daemon_killed_a_hundred_times_loses_nothing(
    city: Path, environment: dict[str, str], processes: Children, lamp: Lamp
) -> None:
    paths = CityPaths(city)
    load = Acknowledged(processes.script(SCRIPT, "alone", str(paths.runtime), paths.city_id()))
    chance, crew = random.Random(5267), JobPool.hired(processes)
    for _ in range(KILLS):
        crew.live("one", city, "up")
        crew.up("one")
        load.wait_for(chance.randrange(4))
        crew.kill("one")
    last, said = start_daemon(processes, city, environment)
    assert said[0].startswith("Took over")
    assert lamp("stop").returncode == 0
    assert last.process.wait(timeout=180) == 0
    assert len(events_of(city, "controller.started")) == KILLS + 1
    assert len(set(events_of(city, "owner.lost"))) == KILLS
    assert len(events_of(city, "owner.lost")) == KILLS
    assert len(events_of(city, "controller.stopped")) == 1
    processes.close()
    kept = events_of(city, "test.said")
    assert len(set(kept)) == len(kept)
    assert len(load.finish()) > KILLS
    assert set(load.subjects) <= set(kept)
    assert list((paths.runtime / "owners").iterdir()) == []
    assert list((paths.runtime / "wake").iterdir()) == []


def test_a_crowd_of_callers_killed_at_any_moment_loses_nothing_acknowledged(city: Path, processes: Children) -> None:
    paths = CityPaths(city)
    chance = random.Random(5267)
    acknowledged: set[str] = set()
    for turn in range(CROWD_KILLS):
        crowd = processes.script(SCRIPT, "together", str(paths.runtime), paths.city_id(), f"crowd{turn}")
        heard = Acknowledged(crowd)
        heard.wait_for(1 + chance.randrange(300))
        crowd.kill()
        acknowledged |= set(heard.finish())
    kept = events_of(city, "test.said")
    assert len(set(kept)) == len(kept)
    assert len(acknowledged) > CROWD_KILLS
    assert acknowledged <= set(kept)


def test_the_next_daemon_voids_the_dead_one_and_status_tells_the_truth(
    city: Path, environment: dict[str, str], processes: Children, lamp: Lamp
) -> None:
    first, _ = start_daemon(processes, city, environment)
    first.kill()
    assert json.loads(lamp("status", "--json").stdout)["controller"]["running"] is False
    second, said = start_daemon(processes, city, environment)
    assert said[0].startswith(f"Took over from process {first.process.pid} ")
    status = json.loads(lamp("status", "--json").stdout)["controller"]
    assert (status["running"], status["pid"]) == (True, second.process.pid)
    store = _open(city)
    try:
        lost = store.read(lambda tx: tx.events.latest(EventFilter(type="owner.lost"), limit=10))
    finally:
        store.close()
    assert [event.payload["pid"] for event in lost] == [first.process.pid]
