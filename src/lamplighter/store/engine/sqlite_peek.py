"""One look at a SQLite store, for commands that must be quick: no writer, no lock, no explanation of errors.

Whatever is unusual about the file is left to `SqliteConnection`, which says what is wrong: the look gives None then.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote_from_bytes

from lamplighter.store.engine.db import Params, Row
from lamplighter.store.engine.schema import READ_LEVEL, fits

BUSY_SECONDS = 1.0
R = TypeVar("R")


class PeekDb:
    """A connection as far as reading needs it; the statements must be the same for both databases."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Params) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def row(self, sql: str, params: Params) -> Row | None:
        row: Row | None = self._connection.execute(sql, params).fetchone()
        return row


def peek(path: Path, look: Callable[[PeekDb], R]) -> R | None:
    """What `look` finds in one snapshot; None if the file cannot be used as it is, or is not this program's."""
    if not os.access(path, os.W_OK):  # missing or read-only: opened here, SQLite would leave files beside it
        return None
    try:
        connection = sqlite3.connect(
            f"file:{quote_from_bytes(os.fsencode(path))}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            db = PeekDb(connection)
            return look(db) if fits(db.row(READ_LEVEL, {})) else None
        finally:
            connection.close()
    except sqlite3.Error:
        return None
