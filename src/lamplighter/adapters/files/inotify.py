"""Watches directories for changes with Linux's inotify, without polling."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from lamplighter.kit.inotify import CLOSE_WRITE, Inotify
from lamplighter.kit.limits import TimeLimit

_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE, _SELF = 0x2, 0x4, 0xC0, 0x100, 0x200, 0xC00
_MASK = _MODIFY | _ATTRIB | CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _SELF


async def stirs(
    directories: Iterable[Path], fit: Callable[[str], bool], *, quiet: timedelta, most: timedelta, stop: asyncio.Event
) -> AsyncGenerator[bool, None]:
    """Yields when paths that `fit` changed and were then `quiet`, or kept changing for `most`; until `stop` is set.

    Raises OSError for a directory that does not exist, or when the system allows no more watches.
    """
    heard = asyncio.Event()
    with contextlib.closing(_Watched(directories)) as watched:
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _stopping: heard.set())
        loop = asyncio.get_running_loop()
        loop.add_reader(watched.fd, lambda: heard.set() if any(map(fit, watched.changed())) else None)
        try:
            while not await _is_stopped(heard, stop):
                await _gathered(heard, stop, quiet, loop.time() + most.total_seconds())
                if not stop.is_set():
                    yield True
        finally:
            loop.remove_reader(watched.fd)
            stopping.cancel()


async def _is_stopped(heard: asyncio.Event, stop: asyncio.Event) -> bool:
    await heard.wait()
    return stop.is_set()


async def _gathered(heard: asyncio.Event, stop: asyncio.Event, quiet: timedelta, until: float) -> None:
    """Wait until no change was heard for `quiet`, but not beyond `until` or `stop`."""
    loop = asyncio.get_running_loop()
    while heard.is_set() and not stop.is_set() and loop.time() < until:
        heard.clear()
        with contextlib.suppress(TimeoutError):
            async with TimeLimit(quiet.total_seconds()):
                await heard.wait()
    if not stop.is_set():
        heard.clear()


class _Watched:
    def __init__(self, directories: Iterable[Path]) -> None:
        self._notify = Inotify()
        self.fd = self._notify.fd
        self._places: dict[int, str] = {}
        try:
            for directory in directories:
                place = os.fspath(directory)
                self._places[self._notify.add(place, _MASK)] = place
        except OSError:
            self.close()
            raise

    def changed(self) -> Iterator[str]:
        """The paths that changed since the last call."""
        for change in self._notify.read():
            place = self._places.get(change.watch)
            if place is None:  # the event queue overflowed: any directory may have changed
                yield from self._places.values()
            else:
                yield f"{place}/{change.name}" if change.name else place

    def close(self) -> None:
        self._notify.close()
