"""Marks that something is open for a person, for as long as the program lives that their process has become.

The kernel keeps a lock for whoever has its descriptor. Some programs close all descriptors that they inherit, so the
process, which stays the same when it becomes its program, is named in the file too.
"""

import fcntl
import os
from pathlib import Path

from lamplighter.adapters.processes.makers import at_work, mark_of


def held(path: Path) -> int | None:
    """A descriptor with the lock of that file, which programs that are executed inherit; None if it is held already.

    Raises OSError if the file cannot be made.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(fd) or _is_named(fd):
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, mark_of(os.getpid()).encode(), 0)
    os.set_inheritable(fd, True)
    return fd


def is_held(path: Path) -> bool:
    """Whether a living process has the lock of that file or is named in it; False if there is no such file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(fd) or _is_named(fd)
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(fd: int) -> bool:
    """Whether a living process is named; this one has become no program, so it holds what it has a descriptor of."""
    mark = os.pread(fd, 200, 0).decode(errors="replace")
    return mark.partition(".")[0] != str(os.getpid()) and at_work(mark)
