"""The database or the whole state of a city is taken away while its daemon runs: it is told, and nothing fires."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Lamp = Callable[..., "subprocess.CompletedProcess[str]"]
CITY = """
[workspace]
name = "town"
[session]
provider = "subprocess"
[api]
port = 0
[[agents]]
name = "calm"
start_command = '''echo $$ >>starts; while :; do sleep 1000 & wait; done'''
"""
TICK = '[automation]\nexec = "echo $LAMP_RUN_ID >> ran"\ngate = "cooldown"\ninterval = "200ms"\n'
WITHIN = 120.0


class Daemon:
    def __init__(self, city: Path, environment: dict[str, str]) -> None:
        self.city = city
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", "up", "--city", str(city)],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def says(self, word: str) -> str:
        assert self.process.stderr is not None
        return next(line for line in self.process.stderr if word in line)

    def lines(self, name: str, count: int) -> list[str]:
        """The lines of a file of the city, once there are so many."""
        path = self.city / name
        until = time.monotonic() + WITHIN
        while time.monotonic() < until:
            found = path.read_text().split() if path.exists() else []
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"{name} has fewer than {count} lines")


@pytest.fixture
def daemon(city: Path, environment: dict[str, str]) -> Iterator[Daemon]:
    (city / "city.toml").write_text(CITY)
    file = city / ".gc/formulas/automations/tick/automation.toml"
    file.parent.mkdir(parents=True)
    file.write_text(TICK)
    started = Daemon(city, environment)
    try:
        started.lines("ran", 2)
        started.lines("starts", 1)
        yield started
    finally:
        started.process.kill()
        started.process.communicate()
        for pid in (city / "starts").read_text().split():
            subprocess.run(["pkill", "-KILL", "-P", pid], check=False)
            with_suppressed_kill(int(pid))


def with_suppressed_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def readiness(city: Path) -> tuple[int, str]:
    port = json.loads((city / ".gc/api.json").read_text())["port"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=180) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["detail"]


def test_a_city_without_its_database_fires_nothing_keeps_its_agents_and_goes_on_with_what_was_saved(
    daemon: Daemon, city: Path, lamp: Lamp
) -> None:
    for file in (city / ".gc").glob("lamp.db*"):
        file.unlink()
    assert "was deleted or moved away" in daemon.says("store.gone")
    daemon.says("store.saved")
    ran = len((city / "ran").read_text().split())
    assert readiness(city)[0] == 503
    assert "was deleted or moved away" in readiness(city)[1]
    assert "was deleted or moved away" in lamp("doctor").stdout
    with_suppressed_kill(int(daemon.lines("starts", 1)[0]))
    daemon.lines("starts", 2)  # its agents are looked after all the same
    assert len((city / "ran").read_text().split()) == ran
    assert lamp("stop").returncode == 0

    (copy,) = (city / ".gc").glob("saved-lamp.db.*")
    for command in (["up"], ["start"], ["init"]):
        said = lamp(*command)
        assert (said.returncode, str(copy) in said.stderr) == (5, True), said
    copy.rename(city / ".gc/lamp.db")
    runs = json.loads(lamp("run", "list", "--json").stdout)
    assert {run["id"] for run in runs} >= set((city / "ran").read_text().split())


def test_a_daemon_whose_state_was_moved_away_ends_with_a_code_of_its_own_and_leaves_its_agents(
    daemon: Daemon, city: Path, lamp: Lamp
) -> None:
    (city / ".gc").rename(city / ".gc2")
    assert "was deleted, moved or replaced while the city ran" in daemon.says("error: ")
    assert daemon.process.wait(WITHIN) == 6
    assert not (city / ".gc").exists()
    os.kill(int(daemon.lines("starts", 1)[0]), 0)
    (city / ".gc2").rename(city / ".gc")
    assert lamp("stop").returncode == 0  # it finds the agents that were left


def test_a_city_whose_database_is_lost_says_so_and_begins_anew_only_when_told_to(city: Path, lamp: Lamp) -> None:
    for file in (city / ".gc").glob("lamp.db*"):
        file.unlink()
    for command in (["up"], ["start"], ["init"], ["store", "migrate"], ["doctor", "--fix"]):
        said = lamp(*command)
        assert said.returncode != 0, command
        assert "--new-database" in said.stdout + said.stderr, command
        assert not (city / ".gc/lamp.db").exists(), command
    assert lamp("init", "--new-database").returncode == 0
    assert lamp("start").returncode == 0
