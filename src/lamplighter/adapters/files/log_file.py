"""Writes, rotates, reads and follows the log of a background daemon."""

import os
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

LONGEST = 32 << 20
KEPT = 3
LOOK_EVERY = 4 << 10
"""After so many bytes, check whether the file is too long and still the one at its path."""


class LogFile:
    """A stream on the descriptors that refer to the file at `path`: standard output and error, with any writers.

    When the file is too long, the log goes on in a new one of the same name; `.1` is the previous one, and up to
    `kept` are kept. Lines that cannot be written are lost and counted; the count is written when there is room again.
    """

    def __init__(self, path: Path, descriptors: tuple[int, ...], *, longest: int = LONGEST, kept: int = KEPT) -> None:
        self._path = path
        self._descriptors = descriptors
        self._longest = longest
        self._kept = kept
        self._unlooked = 0
        self._lost = 0
        self._lock = threading.Lock()

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        with self._lock:
            self._write(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        """Does nothing: writes are not buffered."""

    def _write(self, data: bytes) -> None:
        told = f"log.lost lines={self._lost}: there was no room for them\n".encode() if self._lost else b""
        try:
            _write_all(self._descriptors[-1], told + data)
        except OSError:
            self._lost += data.count(b"\n")
            return
        self._lost = 0
        self._unlooked += len(data)
        if self._unlooked >= min(LOOK_EVERY, self._longest):
            self._unlooked = 0
            with suppress(OSError):  # the file stays as it is until the next check
                self._look()

    def _look(self) -> None:
        if not same_file(self._descriptors[-1], self._path):
            self._go_on_in_new_file()  # another process moved or removed it
        elif os.fstat(self._descriptors[-1]).st_size >= self._longest:
            self._go_on_in_new_file(aside=True)

    def _go_on_in_new_file(self, *, aside: bool = False) -> None:
        """Opens the new file first: without a descriptor for it the old one must not be moved."""
        fresh = self._path.with_name(f"{self._path.name}.new")
        with suppress(FileNotFoundError):
            fresh.unlink()
        file = open_log(fresh)
        try:
            if aside:
                put_aside(self._path, kept=self._kept)
            fresh.replace(self._path)
            for descriptor in self._descriptors:
                os.dup2(file, descriptor)
        finally:
            os.close(file)


def open_log(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def put_aside(path: Path, *, kept: int = KEPT) -> None:
    """Rename `daemon.log` to `daemon.log.1`, and the older ones up by one; the oldest is overwritten."""
    for number in range(kept - 1, 0, -1):
        with suppress(FileNotFoundError):
            numbered(path, number).replace(numbered(path, number + 1))
    path.replace(numbered(path, 1))


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def same_file(descriptor: int, path: Path) -> bool:
    try:
        here, there = os.fstat(descriptor), path.stat()
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of the log, reaching into the previous file if the current one is short. Raises OSError."""
    lines = _lines(path)
    last = deque(lines, maxlen=count)
    if len(last) < count:
        last = deque([*_lines(numbered(path, 1)), *last], maxlen=count)
    return list(last)


class Follower:
    """Reads what is added to the log from now on, also after it is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = _opened(path)
        self._rest = ""
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        """The complete lines added since the last call; after a rotation, first the rest of the old file."""
        text = self._read()
        if self._file is None or not same_file(self._file.fileno(), self._path):
            text += self._read() + self._open_next()
        *lines, self._rest = (self._rest + text).split("\n")
        return lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self) -> str:
        if self._file is None:
            return ""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # it was truncated
        return self._file.read()

    def _open_next(self) -> str:
        fresh = _opened(self._path)
        if fresh is None:
            return ""
        self.close()
        self._file = fresh
        return self._read()


def _lines(path: Path) -> Iterable[str]:
    file = _opened(path)
    if file is None:
        return
    with file:
        for line in file:
            yield line.rstrip("\n")


def _opened(path: Path) -> IO[str] | None:
    try:
        return path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
