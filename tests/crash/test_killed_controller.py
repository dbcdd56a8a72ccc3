"""The controller is killed again and again while agents run: none dies with it, none is started twice."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crew import JobPool

from lamplighter.testing.processes import Children

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]
AGENTS = 20
KILLS = 50
# An agent notes its start, and leaves with a status of its own as soon as its file says so.
AGENT = """echo $$ >> starts/{name}; trap 'exit 3' USR1; while :; do sleep 1000 & wait; done"""


@pytest.fixture
def crowd(city: Path, lamp: Lamp) -> Iterator[list[str]]:
    """A city with many agents; whatever runs is stopped at the end."""
    names = [f"a{number}" for number in range(AGENTS)]
    (city / "starts").mkdir()
    agents = "".join(
        f"[[agents]]\nname = \"{name}\"\nstart_command = '''{AGENT.format(name=name)}'''\n" for name in names
    )
    head = '[workspace]\nname = "town"\n[session]\nprovider = "subprocess"\n[daemon]\nmax_restarts = 0\n'
    (city / "city.toml").write_text(head + agents)
    yield names
    assert lamp("stop").returncode == 0


def starts(city: Path, name: str) -> list[int]:
    path = city / "starts" / name
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for(check: Callable[[], bool], what: str, within: float = 120) -> None:
    deadline = time.monotonic() + within
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def agents(lamp: Lamp) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(lamp("agent", "list", "--json").stdout)}


def test_no_agent_dies_with_its_controller_and_none_is_started_twice(
    city: Path, crowd: list[str], lamp: Lamp, processes: Children
) -> None:
    chance, crew = random.Random(5267), JobPool.hired(processes)
    crew.live("one", city, "up")
    crew.up("one")
    wait_for(lambda: all(starts(city, name) for name in crowd), "not all were started")
    pids = {name: starts(city, name)[-1] for name in crowd}
    expected = dict.fromkeys(crowd, 1)
    ended: dict[str, int] = {}
    for turn in range(KILLS):
        crew.kill("one")
        assert all(alive(pid) for pid in pids.values()), f"an agent died with controller {turn}"
        if turn % 10 == 5:  # one ends while nobody looks
            name = chance.choice([name for name in crowd if name not in ended])
            os.kill(pids[name], signal.SIGUSR1)
            ended[name] = pids[name]
            wait_for(lambda pid=pids[name]: not alive(pid), "it did not end")
            expected[name] += 1
        crew.live("one", city, "up")
        crew.up("one")
        if turn % 10 == 5:
            wait_for(lambda: all(len(starts(city, one)) == expected[one] for one in ended), "not relit")
            pids |= {one: starts(city, one)[-1] for one in ended}
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.2)  # killed in the midst of its first look, or after it
    wait_for(lambda: len(agents(lamp)) == AGENTS and all(
        row["state"] == "running" for row in agents(lamp).values()
    ), "not all run")  # fmt: skip
    assert {name: len(starts(city, name)) for name in crowd} == expected
    assert {name: row["pid"] for name, row in agents(lamp).items()} == pids
    for name in ended:
        story = json.loads(lamp("agent", "show", name, "--json").stdout)
        lives = [start for start in story["starts"] if start["failure"] is None]  # a busy machine may fail a start
        assert [start["exit_status"] for start in lives] == [None, 3], story["starts"]
