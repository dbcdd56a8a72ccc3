"""Saves a SQLite file as it is at one moment, while others write to it."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from lamplighter.store.engine.sqlite_connection import connect, told

PAGES = 4096


def into_one_file(path: Path) -> None:
    """Bring what is in the log into the file itself, which then can be moved alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with told(path):
            connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        connection.close()


def save_sqlite(path: Path, to: Path, tell: Callable[[int, int], None]) -> None:
    """Save one snapshot to a new file that only its owner can read; `tell` gets the pages done and all pages.

    The snapshot is held from the first page to the last: else each write of another process would begin it anew.
    """
    os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    source = connect(path, read_only=True)
    try:
        target = sqlite3.connect(to, isolation_level=None)
        try:
            with told(path):
                source.execute("BEGIN")
                source.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                source.backup(target, pages=PAGES, progress=lambda _, left, of: tell(of - left, of))
                target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        finally:
            target.close()
    finally:
        source.close()
