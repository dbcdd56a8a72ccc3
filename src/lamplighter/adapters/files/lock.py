"""Allows one controller per city, by a file lock that the kernel releases however the process ends."""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from lamplighter.kit.errors import Conflict, Unavailable

LET_GO_SECONDS = 5.0
"""How long a dead controller's lock may persist: a child it had just forked holds it until exec."""


class ControllerRunning(Conflict):
    def __init__(self, pid: str) -> None:
        who = f" (pid {pid})" if pid else ""
        super().__init__(
            f"A controller already runs this city{who}.",
            hint="`lamp status` shows it; `lamp stop` ends it.",
        )


class ControllerLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def take(self) -> None:
        """Raises ControllerRunning when a living process holds it; waits up to LET_GO_SECONDS for a dead one's lock."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(
                f"{self._path} cannot be written: {error.strerror}.",
                hint="Check the owner and mode of the city's .gc directory and how its disk is mounted.",
            ) from error
        until = time.monotonic() + LET_GO_SECONDS
        while not _locked(fd):
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            if _lives(holder) or time.monotonic() > until:
                os.close(fd)
                raise ControllerRunning(holder)
        self._fd = fd
        with contextlib.suppress(OSError):  # the lock counts; the pid is only for people, and the disk may be full
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())

    @property
    def in_place(self) -> bool:
        """Whether the locked file is still the one at its path, where other processes look for it."""
        if self._fd is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), self._path.stat())
        except OSError:
            return False

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _locked(fd: int) -> bool:
    # Several tries: `controller_pid` in another process holds the lock for an instant.
    for pause in (0.01, 0.02, 0.04, 0):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
        else:
            return True
    return False


def _lives(holder: str) -> bool:
    """False only if no process with that id exists; True also when that is unknown."""
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True


def controller_pid(path: Path) -> int | None:
    """The pid of the process that holds the lock, 0 if its pid is not known; None when no process holds it.

    The lock of a process that is gone is waited for, up to LET_GO_SECONDS: a child that it was about to start when it
    was killed holds it a moment longer.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror}.", hint="Ask the user who owns the city, or become that user."
        ) from error
    until = time.monotonic() + LET_GO_SECONDS
    try:
        while not _shared(fd):
            text = os.pread(fd, 32, 0).decode(errors="replace").strip()
            if _lives(text) or time.monotonic() > until:
                return int(text) if text.isdigit() else 0
            time.sleep(0.01)
        return None
    finally:
        os.close(fd)


def _shared(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
