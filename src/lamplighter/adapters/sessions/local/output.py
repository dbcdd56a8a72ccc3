"""Reads and bounds a session's output file, and tells when it was last written."""

import contextlib
import ctypes
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from lamplighter.ports.sessions import Output

MOST_BYTES = 8 * 1024 * 1024
MOST_READ = 1024 * 1024
_CHUNK = 64 * 1024
_BLOCK = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of Linux's fallocate


def older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def tail(path: Path, lines: int) -> str:
    """The last lines, reaching into the rotated file if the current one is short; everything for 0 or less.

    A read error is returned as the text, because callers can go on without the output.
    """
    try:
        data = _last(path, lines)
        if lines <= 0 or data.count(b"\n") < lines:
            data = _last(older(path), lines) + data
    except OSError as error:
        return f"[{path} cannot be read: {error.strerror}]"
    found = data.decode(errors="replace").splitlines()
    return "\n".join(found[-lines:] if lines > 0 else found)


def end_of(path: Path, most_bytes: int) -> str:
    """The last bytes as text, reaching into the rotated file if the current one is short."""
    data = _last_bytes(path, most_bytes)
    if len(data) < most_bytes:
        data = _last_bytes(older(path), most_bytes - len(data)) + data
    return data.decode(errors="replace")


def read_on(path: Path, position: int) -> Output:
    """The output after `position`. A file shorter than that was truncated: the rest is then in the rotated file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < position:
                rest = _from(older(path), position)
                file.seek(0)
                return Output(rest + file.read(MOST_READ), -len(rest))
            file.seek(position)
            return Output(file.read(MOST_READ), position)
    except FileNotFoundError:
        return Output(b"", position)


def trim(path: Path, most_bytes: int, keep_bytes: int) -> bool:
    """Free the disk space of all but the end of a file that is larger than `most_bytes`; True if it was.

    Unlike `rotate` it loses none of the latest output, however fast the file grows: the blocks at its beginning are
    freed in place, and its length stays. If the file system cannot do that, the file is rotated.
    """
    try:
        with path.open("r+b") as file:
            found = os.fstat(file.fileno())
            if found.st_blocks * 512 <= most_bytes:
                return False
            if punch(file.fileno(), (found.st_size - keep_bytes) // _BLOCK * _BLOCK):
                return True
    except FileNotFoundError:
        return False
    return rotate(path, most_bytes)


def punch(fd: int, length: int) -> bool:
    """Free the blocks of the first `length` bytes; False when that cannot be done."""
    if length <= 0 or not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    nowhere = ctypes.c_int64(0)
    return bool(libc.fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, nowhere, ctypes.c_int64(length)) == 0)


def rotate(path: Path, most_bytes: int = MOST_BYTES) -> bool:
    """Copy and truncate a file larger than `most_bytes`; its writer has it open for appending and can go on.

    If the copy fails, as on a full disk, the file is truncated without it. Output written between copying and
    truncating is lost.
    """
    try:
        before = path.stat()
    except FileNotFoundError:
        return False
    if before.st_size <= most_bytes:
        return False
    try:
        shutil.copyfile(path, older(path))
    except OSError:
        with contextlib.suppress(OSError):
            older(path).unlink(missing_ok=True)
    _cut(path, before)
    return True


def clear(path: Path) -> None:
    older(path).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        _cut(path, path.stat())


def last_written(path: Path | str) -> datetime | None:
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)  # noqa: PTH116  a hot path
    except OSError:
        return None


def _cut(path: Path, before: os.stat_result) -> None:
    os.truncate(path, 0)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # truncating is not activity of the program


def _last(path: Path, lines: int) -> bytes:
    """The end of the file with at least `lines` line breaks in it, or all of the file."""
    try:
        with path.open("rb") as file:
            position = file.seek(0, os.SEEK_END) if lines > 0 else 0
            if lines <= 0:
                return file.read()
            data = b""
            while position > 0 and data.count(b"\n") <= lines:
                step = min(_CHUNK, position)
                position -= step
                file.seek(position)
                data = file.read(step) + data
            return data
    except FileNotFoundError:
        return b""


def _last_bytes(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most_bytes, 0))
            return file.read(most_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _from(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read()
    except FileNotFoundError:
        return b""
