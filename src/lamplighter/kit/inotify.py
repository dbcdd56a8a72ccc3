"""Linux's inotify: one descriptor that reports changes in any number of directories."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from functools import cache

from lamplighter.kit.records import record

CLOSE_WRITE, OVERFLOW, IGNORED = 0x8, 0x4000, 0x8000
_ONLY_DIRECTORIES = 0x01000000
_HEAD = struct.Struct("iIII")
_PART = 65536


def available() -> bool:
    return sys.platform.startswith("linux")


@record
class Change:
    """`watch` is the number that `add` returned, or -1 with OVERFLOW, when the system's queue was full."""

    watch: int
    mask: int
    name: str


class Inotify:
    """Raises OSError when the system has no more descriptors or watches, or when a directory does not exist."""

    def __init__(self) -> None:
        self.fd = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")

    def add(self, directory: str, mask: int) -> int:
        added = _libc().inotify_add_watch(self.fd, os.fsencode(directory), ctypes.c_uint32(mask | _ONLY_DIRECTORIES))
        return _checked(added, directory)

    def remove(self, watch: int) -> None:
        _libc().inotify_rm_watch(self.fd, watch)  # a watch that is already gone is no error

    def read(self) -> Iterator[Change]:
        """The changes since the last call, a bounded part of them at a time."""
        try:
            data = os.read(self.fd, _PART)
        except BlockingIOError:
            return
        while data:
            watch, mask, _, length = _HEAD.unpack_from(data)
            name = os.fsdecode(data[_HEAD.size : _HEAD.size + length].rstrip(b"\0"))
            data = data[_HEAD.size + length :]
            yield Change(watch, mask, name)

    def close(self) -> None:
        os.close(self.fd)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
