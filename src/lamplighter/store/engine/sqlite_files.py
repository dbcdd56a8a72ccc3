"""The files behind an open SQLite database: whether their paths still lead to them, and to the same database.

SQLite itself never checks: it goes on writing to a file that was deleted, and to one whose content was replaced.
"""

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from lamplighter.store.errors import StoreGone

# The log and its index exist as long as any connection is open; the last connection to close removes them.
BESIDE = ("-wal", "-shm")
LOOKS = 3
BETWEEN_LOOKS = 0.05
MARK = "PRAGMA application_id"
"""A number that `migrate` gives a database that has none; it is in the header of the file and never changes."""
_UNREADABLE = -1


class FileId(NamedTuple):
    device: int
    inode: int


@dataclass
class DatabaseFiles:
    """Shared by all connections of one store. Made right after the first was opened and has read something.

    `mark` is the database's mark as that connection read it; 0 if only earlier programs migrated it, which set none.
    """

    path: Path
    mark: int

    def __post_init__(self) -> None:
        self._names = [str(self.path), *(f"{self.path}{ending}" for ending in BESIDE)]
        self._ids = [_identity(name) for name in self._names]
        self._changed: tuple[int, int] | None = None
        self._is_marked = False
        """Whether the mark was seen in the file itself; before the first checkpoint only the log has it."""
        self._exchanged: StoreGone | None = None

    def check(self) -> None:
        """Raises StoreGone when a path leads to no file or to another one. Three stat calls, some microseconds."""
        if self._exchanged is not None:
            raise self._exchanged
        for name, known in zip(self._names, self._ids, strict=True):
            found = _identity(name)
            if found != known:
                raise StoreGone(name, "deleted or moved away" if found is None else "replaced by another file")

    def check_content(self) -> None:
        """As `check`, also if another database was written into the file, as by `cp`. Reads it only if it changed."""
        self.check()
        changed = _last_change(self._names[0])
        if not self.mark or changed == self._changed:
            return
        for _ in range(LOOKS):
            found = _mark_of(self.path)
            if found is None:
                return  # it cannot be read now; the next call looks again
            if found == self.mark or (found == 0 and not self._is_marked):
                self._changed, self._is_marked = changed, found == self.mark
                return
            time.sleep(BETWEEN_LOOKS)
        self._exchanged = StoreGone(self._names[0], "overwritten with other content")
        raise self._exchanged

    def save_copy(self, connection: sqlite3.Connection, to: Path) -> None:
        """Save all that an open connection can still read as a new database.

        Raises sqlite3.Error, and StoreGone if the file was overwritten with other content.
        """
        if self._exchanged is not None:
            raise self._exchanged
        connection.execute("VACUUM INTO ?", (str(to),))
        to.chmod(0o600)

    @property
    def intact(self) -> bool:
        try:
            self.check()
        except StoreGone:
            return False
        return True


def close_or_abandon(connection: sqlite3.Connection, files: DatabaseFiles | None) -> None:
    """Close the connection if its files are intact; otherwise keep it open until the process ends.

    Closing would write the log into the file and delete the log by its path, which may lead to another file by now. An
    extra reference count keeps Python from closing the connection.
    """
    if files is None or files.intact:
        connection.close()
    else:
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _identity(name: str) -> FileId | None:
    try:
        found = os.stat(name)  # noqa: PTH116  a path object would double what this costs
    except OSError:
        return None
    return FileId(found.st_dev, found.st_ino)


def _last_change(name: str) -> tuple[int, int]:
    try:
        found = os.stat(name)  # noqa: PTH116  as above
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _mark_of(path: Path) -> int | None:
    """The mark in the file itself, without its log; None if it cannot be read now, -1 if the file is no database.

    Read through SQLite, because closing a file that we opened ourselves would drop this process's locks on it.
    """
    url = f"file:{quote_from_bytes(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(url, uri=True)
        try:
            mark: int = connection.execute(MARK).fetchone()[0]
            return mark
        finally:
            connection.close()
    except sqlite3.Error as error:  # such as during a checkpoint, which writes the header before the last pages
        return _UNREADABLE if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB else None
