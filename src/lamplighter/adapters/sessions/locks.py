"""Locks of sessions: by name inside this process, by file against other processes."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from weakref import WeakValueDictionary

from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.clock import Clock
from lamplighter.ports.sessions import ProviderUnavailable

_POLL = timedelta(milliseconds=20)


class NameLocks:
    """One lock per name, kept only while a task holds or awaits it, because runs keep adding new names."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[SessionName, asyncio.Lock] = WeakValueDictionary()

    def __getitem__(self, name: SessionName) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())


@contextlib.asynccontextmanager
async def held(path: Path, *, clock: Clock, within: timedelta) -> AsyncIterator[None]:
    """Hold the lock file against other processes. Raises ProviderUnavailable when it is not free `within` the time."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = clock.monotonic() + within.total_seconds()
        while not _taken(fd):
            if clock.monotonic() >= deadline:
                raise ProviderUnavailable(f"Another process has held {path.name} for too long.", hint="Try again.")
            await clock.wait(asyncio.Event(), at_most=_POLL)
        yield
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
