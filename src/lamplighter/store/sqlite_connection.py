"""One connection to a SQLite file: how it is opened, how its errors are told, one transaction on it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.store import errors
from lamplighter.store.db import Params, Row
from lamplighter.store.dialect import SQLITE
from lamplighter.store.schema import PROGRAM, SchemaGuard
from lamplighter.store.turnstile import Turnstile
from lamplighter.store.tx import Tx

BUSY_SECONDS = 10.0


class SqliteDb:
    """The connection as repositories see it."""

    __slots__ = ("connection", "dialect")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.dialect = SQLITE

    def rows(self, sql: str, params: Params) -> list[Row]:
        return self.connection.execute(SQLITE.render(sql), params).fetchall()

    def row(self, sql: str, params: Params) -> Row | None:
        row: Row | None = self.connection.execute(SQLITE.render(sql), params).fetchone()
        return row

    def execute(self, sql: str, params: Params) -> int:
        return self.connection.execute(SQLITE.render(sql), params).rowcount

    def execute_many(self, sql: str, params: list[Params]) -> None:
        self.connection.executemany(SQLITE.render(sql), params)


def connect(path: Path, *, read_only: bool = False, create: bool = False) -> sqlite3.Connection:
    """Open the file durable and strict; `create` only where a new database is meant."""
    if not create and not path.exists():
        raise errors.StoreMissing(str(path))
    with told(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        try:
            _prepare(connection, read_only=read_only)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, *, read_only: bool) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if read_only:
        connection.execute("PRAGMA query_only = ON")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the file, not those about a statement, into sentences for a person."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, path) from error


def translated(error: BaseException, path: Path) -> BaseException:
    """The error as a person should read it; itself where it is not about the file."""
    return (explain(error, path) or error) if isinstance(error, sqlite3.Error) else error


def explain(error: sqlite3.Error, path: Path) -> Exception | None:
    where = str(path)
    code = getattr(error, "sqlite_errorcode", None)
    told_as: Exception | None = None
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            told_as = errors.StoreBusy(where)
        case sqlite3.SQLITE_FULL:
            told_as = errors.StoreFull(where)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            told_as = errors.StoreReadOnly(where)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            told_as = errors.StoreCorrupt(where, str(error))
        case sqlite3.SQLITE_CANTOPEN:
            told_as = errors.StoreReadOnly(where) if path.exists() else errors.StoreMissing(where)
        case sqlite3.SQLITE_IOERR:
            told_as = errors.StoreDisk(where, str(error))
    return told_as


class SqliteConnection:
    """A writing connection with its turnstile; one thread at a time uses it."""

    def __init__(self, path: Path, city: str) -> None:
        self.path = path
        self.raw = connect(path)
        if not _has_schema(self.raw):
            self.raw.close()
            raise errors.StoreOld(str(path), 0, PROGRAM)
        self.tx = Tx(SqliteDb(self.raw), city)
        self._turnstile = _turnstile(path)
        self.guard = SchemaGuard(str(path), self.tx.db)
        self.guard.check()
        self._seen: int = self.raw.execute("PRAGMA user_version").fetchone()[0]

    def begin(self) -> None:
        """Take the write lock, fairly among processes, and see that the schema still serves this program."""
        if not self._turnstile.enter(at_most=BUSY_SECONDS):
            raise errors.StoreBusy(str(self.path))
        try:
            self.raw.execute("BEGIN IMMEDIATE")
            # Migrations change the user version, so an unchanged one means an unchanged schema, at a third of the cost.
            if self.raw.execute("PRAGMA user_version").fetchone()[0] != self._seen:
                self.guard.check()
        except BaseException as error:
            self.rollback()
            raise translated(error, self.path) from error

    def commit(self) -> None:
        crash_point(CrashPoint.STORE_BEFORE_COMMIT)
        try:
            self.raw.execute("COMMIT")
        except BaseException as error:
            self.rollback()
            raise translated(error, self.path) from error
        crash_point(CrashPoint.STORE_AFTER_COMMIT)

    def leave(self) -> None:
        """Let the next writer in: after the answers are on their way, for their sake."""
        self._turnstile.leave()

    def rollback(self) -> None:
        try:
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")
        finally:
            self.tx.take_wakes()
            self._turnstile.leave()

    def alone(self, fn: Callable[[Tx], Any]) -> tuple[Any, frozenset[str]]:
        """One function, one transaction: its value, and the wake-ups to send."""
        self.begin()
        try:
            value = fn(self.tx)
        except BaseException as error:
            self.rollback()
            raise translated(error, self.path) from error
        self.commit()
        self.leave()
        return value, self.tx.take_wakes()

    def close(self) -> None:
        self.raw.close()
        self._turnstile.close()


def _has_schema(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_level'").fetchone() is not None


def _turnstile(path: Path) -> Turnstile:
    try:
        return Turnstile(path)
    except OSError as error:
        raise errors.StoreReadOnly(str(path)) from error
