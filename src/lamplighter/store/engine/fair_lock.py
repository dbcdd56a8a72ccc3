"""A fair queue for the write lock of one SQLite file among processes.

Processes that wait for SQLite's own lock poll it, so a busy writer that takes it again at once can starve them. Here
each process takes the turn lock first and holds it while it waits for the writing lock, so a writer that has just
finished queues up behind it.
"""

import fcntl
import os
import time
from pathlib import Path

_PAUSE = 0.001


class FairLock:
    def __init__(self, database: Path) -> None:
        self._turn = _open(database.with_name(database.name + "-turn"))
        try:
            self._writing = _open(database.with_name(database.name + "-writing"))
        except OSError:
            os.close(self._turn)
            raise

    def enter(self, *, at_most: float) -> bool:
        """Wait for the turn and then for the writing lock; False when `at_most` seconds did not suffice."""
        deadline = time.monotonic() + at_most
        if not _lock(self._turn, deadline):
            return False
        try:
            return _lock(self._writing, deadline)
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def leave(self) -> None:
        fcntl.flock(self._writing, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._turn)
        os.close(self._writing)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(fd: int, deadline: float) -> bool:
    # Not the blocking call: it has no time limit, and a stopped process must not block all others.
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True
