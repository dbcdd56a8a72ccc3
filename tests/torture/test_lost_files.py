"""The SQLite database of a city is taken away under load, again and again, and put back from what was saved."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROUNDS = 4
WITHIN = 60.0
CITY = '[workspace]\nname = "town"\n[session]\nprovider = "subprocess"\n[api]\nport = 0\n'
TICK = '[automation]\nexec = "echo $LAMP_RUN_ID >> ran"\ngate = "cooldown"\ninterval = "100ms"\n'
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("LAMP_", "GC_"))}


def lamp(city: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lamplighter", *arguments, "--city", str(city)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


@pytest.fixture
def city(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "town"
    root.mkdir()
    assert lamp(root, "init", str(root)).returncode == 0
    (root / "city.toml").write_text(CITY)
    for n in range(5):
        file = root / f".gc/formulas/automations/tick{n}/automation.toml"
        file.parent.mkdir(parents=True)
        file.write_text(TICK)
    yield root
    lamp(root, "stop")


def delete_all(runtime: Path) -> None:
    for file in runtime.glob("lamp.db*"):
        file.unlink()


def delete_log(runtime: Path) -> None:
    (runtime / "lamp.db-wal").unlink()


def replace_file(runtime: Path) -> None:
    (runtime / "another").write_bytes((runtime / "lamp.db").read_bytes())
    (runtime / "another").replace(runtime / "lamp.db")


def ran(city: Path) -> list[str]:
    return (city / "ran").read_text().split() if (city / "ran").exists() else []


def grown(city: Path, beyond: int) -> bool:
    return len(ran(city)) > beyond


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < limit, "it took too long"
        time.sleep(0.05)


def put_back(runtime: Path) -> None:
    """What the daemon saved, in the place of what is there."""
    (copy,) = runtime.glob("saved-lamp.db.*")
    delete_all(runtime)
    copy.rename(runtime / "lamp.db")


def test_lost_sqlite_files(city: Path, counts: dict[str, object]) -> None:
    runtime, fired_after = city / ".gc", 0
    for n in range(ROUNDS):
        for harm in (delete_all, delete_log, replace_file):
            before = len(ran(city))
            assert lamp(city, "daemon", "start").returncode == 0, n
            until(lambda before=before: grown(city, before + 20))
            harm(runtime)
            until(lambda: any(runtime.glob("saved-lamp.db.*")))
            settled = len(ran(city))
            time.sleep(2)  # for so long nothing must fire
            fired_after += len(ran(city)) - settled
            assert lamp(city, "stop").returncode == 0
            put_back(runtime)
    kept = {run["id"] for run in json.loads(lamp(city, "run", "list", "--json", "--limit", "10000").stdout)}
    times = Counter(ran(city))
    counts |= {
        "losses": ROUNDS * 3,
        "commands": len(times),
        "fired_into_a_lost_file": fired_after,
        "doubled": sum(n > 1 for n in times.values()),
        "forgotten": len(times.keys() - kept),
    }
    assert [counts[name] for name in ("fired_into_a_lost_file", "doubled", "forgotten")] == [0, 0, 0]
