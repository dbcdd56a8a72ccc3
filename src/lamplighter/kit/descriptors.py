"""File descriptors of this process: their limit, the limit for children, and a reserve that starts do not use.

The system always hands out the lowest free number. Code that can do without a descriptor (starts, watches of
processes) closes one whose number is near the limit. So the numbers near the limit stay free for code that cannot:
control socket, store, log, reading files.
"""

import errno
import os
import resource
from collections.abc import Sequence
from contextlib import suppress

from lamplighter.kit.errors import Unavailable

RESERVE = 64
MOST = 65_536
"""Enough for any city. Some systems allow a thousand million; programs that loop over all of them then take minutes."""
_LIMITED = 'ulimit -S -n "$0"; exec "$@"'

_given: int | None = None
"""The soft limit this process was started with, if `raise_limit` raised it."""


class OutOfDescriptors(Unavailable):
    def __init__(self) -> None:
        super().__init__(
            f"This process has too few free file descriptors ({usage()} are open).",
            hint="Raise its limit (`ulimit -n`, or LimitNOFILE of its service), or let fewer agents run here.",
        )


def raise_limit() -> None:
    """Raise the limit as far as this process may, at most to MOST; if it may not, the limit stays. May be repeated."""
    global _given  # noqa: PLW0603  the limit itself is the process's, too
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (MOST, 10_240):  # macOS allows at most the latter even if it reports no limit
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            _given = soft if _given is None else _given
            return


def for_children() -> int | None:
    """The limit for agents and commands; None if it is the same as this process's own."""
    return _given


def limited(command: Sequence[str]) -> list[str]:
    """The command, wrapped to run with the limit for children.

    Some programs loop over all descriptors up to their limit, or fail with numbers above 1,023.
    """
    return list(command) if _given is None else ["/bin/sh", "-c", _LIMITED, str(_given), *command]


def limit_child(pid: int) -> None:
    """Give a child that was just started the limit for children, if the system allows it; the child may be gone."""
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
    """Whether `fd` belongs to the reserve: the start that opened it then closes it and is refused."""
    return fd >= limit() - reserve()


def too_many_for_a_watch(fd: int) -> bool:
    """Whether a watch of a process must close `fd` and poll instead; its bound is lower, so that starts come first."""
    return fd >= limit() - 2 * reserve()


def count_open() -> int | None:
    """How many are open; None if the system does not tell, or no descriptor is left to find out."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(directory)) - 1  # noqa: PTH208  minus the one used to read it
    return None


def usage() -> str:
    found = count_open()
    return f"{limit() if found is None else found} of {limit()}"


def are_short() -> bool:
    found = count_open()
    return found is None or found >= limit() - reserve()


def is_shortage(error: OSError) -> bool:
    return error.errno in (errno.EMFILE, errno.ENFILE)
