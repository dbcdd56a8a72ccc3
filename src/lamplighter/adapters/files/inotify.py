"""Linux tells of changes in directories by a descriptor, so that nobody needs to wake up and ask."""

import asyncio
import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE, _SELF = 0x2, 0x4, 0x8, 0xC0, 0x100, 0x200, 0xC00
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _SELF | 0x01000000  # the last: only directories
_HEAD = struct.Struct("iIII")
_PART = 65536


def available() -> bool:
    return sys.platform.startswith("linux")


async def stirs(
    directories: Iterable[Path], fit: Callable[[str], bool], *, quiet: timedelta, most: timedelta, stop: asyncio.Event
) -> AsyncGenerator[bool, None]:
    """One item when paths that `fit` have changed and been `quiet`, or have changed for `most`; until `stop` is set.

    Raises OSError for a directory that is gone, or where the system watches no more of them.
    """
    heard = asyncio.Event()
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _stopping: heard.set())
    with contextlib.closing(_Watched(directories)) as watched:
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
    """Until nothing more was heard for a while."""
    loop = asyncio.get_running_loop()
    while heard.is_set() and not stop.is_set() and loop.time() < until:
        heard.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(quiet.total_seconds()):
                await heard.wait()
    if not stop.is_set():
        heard.clear()


class _Watched:
    def __init__(self, directories: Iterable[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._places: dict[int, str] = {}
        self.fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        try:
            for directory in directories:
                place = os.fspath(directory)
                added = self._libc.inotify_add_watch(self.fd, os.fsencode(place), ctypes.c_uint32(_MASK))
                self._places[self._checked(added, place)] = place
        except OSError:
            self.close()
            raise

    def changed(self) -> Iterator[str]:
        """The paths that changed since it was last asked."""
        try:
            data = os.read(self.fd, _PART)
        except BlockingIOError:
            return
        while data:
            watch, _, _, length = _HEAD.unpack_from(data)
            name = os.fsdecode(data[_HEAD.size : _HEAD.size + length].rstrip(b"\0"))
            data = data[_HEAD.size + length :]
            if watch in self._places:
                yield f"{self._places[watch]}/{name}" if name else self._places[watch]
            else:  # more happened than the system remembers: it may have been anywhere
                yield from self._places.values()

    def close(self) -> None:
        os.close(self.fd)

    @staticmethod
    def _checked(result: int, what: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), what)
        return result
