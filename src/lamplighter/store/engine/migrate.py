"""Forward-only migrations, applied under a lock, all that are missing in one transaction; here those of SQLite."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lamplighter.store.engine.migration_files import migrations
from lamplighter.store.engine.schema import PROGRAM, Level, Migration
from lamplighter.store.engine.sqlite_connection import connect as connect_sqlite
from lamplighter.store.engine.sqlite_connection import fair_lock_of
from lamplighter.store.engine.sqlite_connection import told as told_sqlite
from lamplighter.store.engine.sqlite_files import MARK
from lamplighter.store.errors import StoreBusy, StoreLost, StoreNewer, StoreUnavailable

LEVEL_TABLE = "CREATE TABLE IF NOT EXISTS schema_level (version INTEGER NOT NULL, oldest INTEGER NOT NULL)"
BUSY_SECONDS = 30.0


def migrate_sqlite(path: Path, *, to: int | None = None, make: bool = True) -> list[Migration]:
    """Bring the file to this program's schema; returns what was applied.

    Without `make`, raises StoreLost for a file that is missing or has no schema.
    """
    if make:
        _make_private(path)
    elif not path.exists():
        raise StoreLost(str(path), "There is no database at")
    connection = connect_sqlite(path)
    try:
        fair_lock = fair_lock_of(path)
        try:
            if not fair_lock.enter(at_most=BUSY_SECONDS):
                raise StoreBusy(str(path))
            with told_sqlite(path):
                if not make and not _has_schema(connection):
                    raise StoreLost(str(path), "There is nothing in the database")
                return _apply_sqlite(connection, str(path), to)
        finally:
            fair_lock.close()
    finally:
        connection.close()


def _has_schema(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_level'").fetchone() is not None


def _make_private(path: Path) -> None:
    """Create a missing file, readable by its owner only from the start; an existing file keeps its mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(
            f"The database {path} cannot be made: {error.strerror}.",
            hint="Check that its directory is there, its owner and mode, its disk and free space.",
        ) from error


def _apply_sqlite(connection: sqlite3.Connection, where: str, to: int | None) -> list[Migration]:
    applied = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(LEVEL_TABLE)
        row = connection.execute("SELECT version, oldest FROM schema_level").fetchone()
        level = Level(0, 0) if row is None else Level(row["version"], row["oldest"])
        for migration in wanted(migrations("sqlite"), level, where, to):
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute("DELETE FROM schema_level")
            connection.execute("INSERT INTO schema_level VALUES (?, ?)", (migration.version, migration.oldest))
            connection.execute(f"PRAGMA user_version = {migration.version}")  # how a running program notices
            applied.append(migration)
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise
    if not connection.execute(MARK).fetchone()[0]:
        connection.execute(f"{MARK} = {int.from_bytes(os.urandom(4)) & 0x7FFFFFFF | 1}")
    connection.execute("COMMIT")
    return applied


def wanted(known: list[Migration], level: Level, where: str, to: int | None) -> list[Migration]:
    if level.oldest > PROGRAM:
        raise StoreNewer(where, level.version, level.oldest, PROGRAM)
    return [migration for migration in known if level.version < migration.version <= (to or PROGRAM)]


def _statements(sql: str) -> Iterator[str]:
    """One statement at a time: sqlite3's own script runner would commit the transaction around them."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
