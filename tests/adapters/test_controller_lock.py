"""One controller a city: refused beside one that lives, not beside what a dead one was just making."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamplighter.adapters.files.lock import ControllerLock, ControllerRunning, controller_pid
from lamplighter.testing.processes import Child, Children, children

HOLDER = """
import os, sys, time
from pathlib import Path
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
    assert controller_pid(path) is not None
    lock = ControllerLock(path)
    lock.take()
    assert controller_pid(path) == os.getpid()
    lock.release()
    assert controller_pid(path) is None
