"""One controller a city: refused beside one that lives, not beside what a dead one was just making."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.adapters.files import lock
from lamplighter.adapters.files.lock import ControllerLock, ControllerRunning, controller_pid
from lamplighter.testing.processes import Child, Children, children

HOLDER = """
import os, sys, time
from pathlib import Path
from lamplighter.adapters.files import lock
from lamplighter.adapters.files.lock import ControllerLock
lock = ControllerLock(Path(sys.argv[1]))
lock.take()
if sys.argv[2] != "0" and os.fork() == 0:  # a child that has not become its program yet
    time.sleep(float(sys.argv[2]))
    os._exit(0)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def processes() -> Iterator[Children]:
    with children() as started:
        yield started


def held(processes: Children, path: Path, child_lives: float = 0) -> Child:
    holder = processes.start(sys.executable, "-c", HOLDER, str(path), str(child_lives))
    assert holder.line() == "held"
    return holder


def test_beside_one_that_lives_it_is_refused(processes: Children, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    pid = held(processes, path).process.pid
    with pytest.raises(ControllerRunning, match=str(pid)):
        ControllerLock(path).take()
    assert controller_pid(path) == pid


def test_what_a_dead_one_was_just_making_is_waited_for(processes: Children, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held(processes, path, 0.6).kill()
    mine = ControllerLock(path)
    mine.take()
    assert controller_pid(path) == os.getpid()
    mine.release()
    assert controller_pid(path) is None


def test_who_asks_for_the_controller_is_not_told_a_dead_one(processes: Children, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held(processes, path, 0.6).kill()
    assert controller_pid(path) is None


def test_a_lock_that_is_held_for_long_by_others_names_who_took_it(
    processes: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LET_GO_SECONDS", 0.05)
    path = tmp_path / "lock"
    dead = held(processes, path, 3)
    dead.process.kill()
    dead.process.wait()
    assert controller_pid(path) == dead.process.pid
