"""Writes files atomically: to a temporary file in the same directory, synced, then renamed into place."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace `path`; an existing file keeps its mode, `mode` is for a new one. A link is followed and stays a link."""
    path = path.resolve()
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode & 0o7777
    made = path.with_name(f".{path.name}.{os.urandom(6).hex()}.new")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644 if mode is None else mode)
            os.fsync(file.fileno())
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Sync the directory: a rename is durable only once its directory is."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
