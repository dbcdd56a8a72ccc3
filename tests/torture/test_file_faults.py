"""Faults of the file system while automations fire: no inodes, and a directory that cannot be used for some seconds.

Afterwards every run that was fired has ended, no command ran twice, and all goes on by itself.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from drill_city import Town, wait_for

KEEP = "auto_disable_after = 0\n"
TICK = f'gate = "cooldown"\ninterval = "1s"\n{KEEP}exec = "echo $LAMP_RUN_ID >>lines"\n'
AGENT = '[automation.agent]\nprompt = "echo $LAMP_RUN_ID >>lines"\npreset = "shell"\n'
SMALL = 'mount -t tmpfs -o size=8m,nr_inodes=24 none "$1/.gc/{place}"'
ROUNDS = 5
NAMESPACES = (("unshare", "--map-root-user", "--mount"), ("unshare", "--mount"))


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    found = Town(tmp_path / "town")
    found.configure('[daemon]\npatrol_interval = "2s"\n')
    found.automate("tick", TICK)
    found.automate("agent", f'gate = "cooldown"\ninterval = "2s"\n{KEEP}{AGENT}')
    yield found
    found.close()


def namespace() -> tuple[str, ...]:
    """How a mount of one's own is had here."""
    for words in NAMESPACES:
        tried = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True)
        if tried.returncode == 0:
            return words
    pytest.skip("this machine allows no mounts in a namespace")


def lines(town: Town) -> Counter[str]:
    return Counter(town.lines("lines"))


def succeeded(town: Town) -> int:
    return sum(run["state"] == "succeeded" for run in town.runs())


def settle(town: Town, counts: dict[str, object]) -> None:
    """Nothing fires any more; every run ends, and what is on record is what was done."""
    before = succeeded(town)
    wait_for("it does not go on", lambda: succeeded(town) >= before + 3, seconds=60)
    wait_for("what is over is still told", lambda: town.status().get("problems") == {}, seconds=120)
    for name in ("tick", "agent"):  # a pause would hold what is to be tried again, too
        assert town.lamp("automation", "disable", name).returncode == 0
    wait_for("a run stays under way", lambda: all(run["ended_at"] for run in town.runs()), seconds=150)
    found, written = town.runs(), lines(town)
    states = Counter(f"{run['automation']} {run['state']} {run['reason']}" for run in found)
    counts |= {"runs": dict(states), "lines": sum(written.values())}
    assert set(written.values()) == {1}, "a command ran more than once"
    done = {run["id"] for run in found if run["automation"] == "tick" and run["state"] == "succeeded"}
    assert done <= set(written)
    refused = {run["id"] for run in found if run["reason"] == "not_started"}
    assert refused, "nothing was disturbed"
    assert not refused & set(written), "a command ran that is called not started"
    assert town.lamp("stop", seconds=120).returncode == 0


@pytest.mark.parametrize("place", ["commands", "sessions", "runs"])
def test_a_directory_that_cannot_be_used_for_three_seconds(town: Town, counts: dict[str, object], place: str) -> None:
    town.up()
    wait_for("nothing ran", lambda: succeeded(town) >= 2, seconds=60)
    blocked = town.root / ".gc" / place
    told = 0
    for _ in range(ROUNDS):
        if blocked.exists():
            blocked.rename(town.root / f"away-{time.monotonic_ns()}")
        blocked.touch()
        time.sleep(3)
        told += f"{blocked} cannot be written" in town.lamp("doctor").stdout
        blocked.unlink()
        time.sleep(1)
    counts["told_by_doctor"] = told
    assert told == ROUNDS
    settle(town, counts)


@pytest.mark.parametrize("place", ["commands", "sessions"])
def test_a_file_system_without_inodes(town: Town, counts: dict[str, object], place: str) -> None:
    (town.root / ".gc" / place).mkdir(exist_ok=True)
    pid = town.up(SMALL.format(place=place), within=namespace())
    wait_for("nothing ran", lambda: succeeded(town) >= 2, seconds=60)
    inside = Path(f"/proc/{pid}/root{town.root}/.gc/{place}")
    for _ in range(ROUNDS):
        taken = use_up(inside)
        time.sleep(3)
        for path in taken:
            path.unlink()
        time.sleep(1)
    settle(town, counts)


def use_up(inside: Path) -> list[Path]:
    taken = []
    for number in range(1000):
        path = inside / f".taken-{number}"
        try:
            path.touch()
        except OSError:
            break
        taken.append(path)
    return taken
