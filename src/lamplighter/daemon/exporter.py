"""The optional export of events to `.gc/events.jsonl`: one JSON object a line, rotated, each event once.

The position is read from the file itself: after a crash a half-written last line is cut off, and the export continues
after the last whole line.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from lamplighter.domain.events import Event, EventFilter
from lamplighter.kit import json_text
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import Unavailable
from lamplighter.services import events
from lamplighter.store.tx import Store

LARGEST = 64 << 20
KEPT = 5
PAGES_A_TICK = 50
BLOCK = 1 << 16


class Exporter:
    def __init__(self, store: Store, path: Path, *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._store = store
        self._path = path
        self._largest = largest
        self._kept = kept
        self._cursor: int | None = None

    @property
    def cursor(self) -> int | None:
        """The seq up to which events are exported, None while unknown; retention keeps the events after it."""
        return self._cursor

    async def tick(self) -> int:
        """Write what is new; returns how many events. Raises Unavailable when the file cannot be written."""
        try:
            if self._cursor is None:
                self._cursor = last_seq(self._path)
            return await self._write_new()
        except OSError as error:
            self._cursor = None  # the next tick reads the position from the file again
            raise Unavailable(
                f"{self._path} cannot be written: {error.strerror}.",
                hint="Free the disk or mend its mode; the export catches up by itself.",
            ) from error

    async def _write_new(self) -> int:
        written = 0
        for _ in range(PAGES_A_TICK):
            found, cursor = await self._store.read(events.page, EventFilter(after=self._cursor or 0))
            if found:
                self._append(found)
                crash_point(CrashPoint.EXPORT_AFTER_WRITE)
            self._cursor = cursor
            written += len(found)
            if len(found) < events.PAGE:
                break
        return written

    def _append(self, found: Iterable[Event]) -> None:
        if self._path.exists() and self._path.stat().st_size >= self._largest:
            rotate(self._path, kept=self._kept)
        lines = b"".join(json.dumps(event.as_json()).encode() + b"\n" for event in found)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while lines:
                lines = lines[os.write(fd, lines) :]
        finally:
            os.close(fd)


def rotate(path: Path, *, kept: int) -> None:
    """`events.jsonl` becomes `events.jsonl.1`, the older ones move up, the oldest goes."""
    for number in range(kept - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number + 1}"))
    path.replace(path.with_name(f"{path.name}.1"))


def last_seq(path: Path) -> int:
    """The seq of the last whole line, of this file or of the one rotated before it; a torn last line is cut off."""
    for candidate in (path, path.with_name(f"{path.name}.1")):
        if candidate.exists():
            seq = _last_seq_of(candidate)
            if seq is not None:
                return seq
    return 0


def _last_seq_of(path: Path) -> int | None:
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        lines = _backwards(file, end)
        torn = next(lines)
        if torn:
            file.truncate(end - len(torn))
        return next((seq for line in lines if (seq := _seq(line)) is not None), None)


def _backwards(file: BinaryIO, position: int) -> Iterator[bytes]:
    """Yields what follows the last newline, which is empty in an intact file, then the lines from last to first."""
    rest = b""
    while position > 0:
        step = min(BLOCK, position)
        position -= step
        file.seek(position)
        rest, *whole = (file.read(step) + rest).split(b"\n")
        yield from reversed(whole)
    yield rest


def _seq(line: bytes) -> int | None:
    try:
        return int(json_text.parse(line)["seq"])
    except (ValueError, KeyError, TypeError):  # not a line of this export
        return None
