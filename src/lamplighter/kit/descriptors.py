"""File descriptors of this process: their limit, what children get of it, and a reserve that starts leave alone.

The system gives out the lowest free number. So while whatever can do without (starts, watches of processes) gives a
number near the limit back, those near the limit stay free for what cannot: control socket, store, log, a look at files.
"""

import errno
import os
import resource
from collections.abc import Sequence
from contextlib import suppress

from lamplighter.kit.errors import Unavailable

RESERVE = 64
MOST = 65_536
"""Enough for any city. Where the system allows a thousand million, programs that walk through all take minutes."""
_LIMITED = 'ulimit -S -n "$0"; exec "$@"'

_given: int | None = None
"""The soft limit this process was started with, where it was raised."""


class OutOfDescriptors(Unavailable):
    def __init__(self) -> None:
        super().__init__(
            f"This process has too few free file descriptors ({usage()} are open).",
            hint="Raise its limit (`ulimit -n`, or LimitNOFILE of its service), or let fewer agents run here.",
        )


def raise_limit() -> None:
    """As far as this process may; one that may not goes on with what it has. May be repeated."""
    global _given  # noqa: PLW0603  the limit itself is the process's, too
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (MOST, 10_240):  # macOS allows no more than the latter where it says that there is no limit
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            _given = soft if _given is None else _given
            return


def for_children() -> int | None:
    """The limit that agents and commands are to have; None where it is this process's own."""
    return _given


def limited(command: Sequence[str]) -> list[str]:
    """The command with the limit for children. Some programs look at all descriptors up to their limit, or break with
    numbers above 1,023.
    """
    return list(command) if _given is None else ["/bin/sh", "-c", _LIMITED, str(_given), *command]


def limit_child(pid: int) -> None:
    """Give a child that has just been started the limit for children, where the system lets us; it may be gone."""
    if _given is not None and hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_given, hard))


def limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft


def reserve() -> int:
    return min(RESERVE, limit() // 4)


def in_reserve(fd: int) -> bool:
    """Whether all that a start may have is taken: it closes `fd` then, and is refused."""
    return fd >= limit() - reserve()


def too_many_for_a_watch(fd: int) -> bool:
    """Starts come first: a watch of a process closes `fd` earlier than they must, and looks now and then instead."""
    return fd >= limit() - 2 * reserve()


def count_open() -> int | None:
    """None where the system does not tell, or has none left to look with."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(directory)) - 1  # noqa: PTH208  less the one it is read by
    return None


def usage() -> str:
    found = count_open()
    return f"{limit() if found is None else found} of {limit()}"


def are_short() -> bool:
    found = count_open()
    return found is None or found >= limit() - reserve()


def is_shortage(error: OSError) -> bool:
    return error.errno in (errno.EMFILE, errno.ENFILE)
