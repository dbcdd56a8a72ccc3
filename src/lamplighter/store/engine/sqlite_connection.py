"""One connection to a SQLite file: how it is opened, how its errors are explained, and one transaction on it."""

import os
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from lamplighter.kit import descriptors
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.store import errors
from lamplighter.store.engine.db import Params, Row
from lamplighter.store.engine.deferred import Write
from lamplighter.store.engine.dialect import SQLITE
from lamplighter.store.engine.fair_lock import FairLock
from lamplighter.store.engine.hints import Hints
from lamplighter.store.engine.schema import PROGRAM, SchemaGuard
from lamplighter.store.engine.scope import MakeScope, Scope, Scopes, Work
from lamplighter.store.engine.sqlite_files import MARK, DatabaseFiles, close_or_abandon

BUSY_SECONDS = 10.0
MOST_VALUES = 32


class SqliteDb:
    """The connection as repositories see it."""

    __slots__ = ("connection", "dialect", "hints")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.dialect = SQLITE
        self.hints = Hints()

    def rows(self, sql: str, params: Params) -> list[Row]:
        return self.connection.execute(SQLITE.render(sql), params).fetchall()

    def row(self, sql: str, params: Params) -> Row | None:
        row: Row | None = self.connection.execute(SQLITE.render(sql), params).fetchone()
        return row

    def execute(self, sql: str, params: Params) -> int:
        return self.connection.execute(SQLITE.render(sql), params).rowcount

    def write(self, write: Write, city: str, params: Params) -> bool:
        values = {"city": city, **write.encoded(params)}
        return self.connection.execute(SQLITE.render(write), values).rowcount > 0

    def write_new(self, write: Write, city: str, rows: Sequence[Params]) -> set[Any]:
        """In few statements: each one lets all other threads run first, once before it and once after it."""
        written: set[Any] = set()
        left = [{"city": city, **write.encoded(row)} for row in rows]
        while left:
            count = min(1 << (len(left).bit_length() - 1), MOST_VALUES)  # powers of two, so that few statements differ
            sql, names = _for_values(write, count)
            values = [row[name] for row in left[:count] for name in names]
            written.update(found[0] for found in self.connection.execute(sql, values).fetchall())
            left = left[count:]
        return written

    def execute_many(self, sql: str, params: list[Params]) -> None:
        self.connection.executemany(SQLITE.render(sql), params)


@lru_cache(maxsize=64)
def _for_values(write: Write, count: int) -> tuple[str, tuple[str, ...]]:
    sql, names = write.for_values(count)
    return SQLITE.render(sql), names


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the file with durable commits and foreign keys. Raises StoreMissing: only `migrate` creates the file."""
    if not path.exists():
        raise errors.StoreMissing(str(path))
    if not os.access(path, os.W_OK):
        # Checked before SQLite opens it, which would leave files beside it that stay read-only from then on.
        raise errors.StoreReadOnly(str(path))
    with told(path):
        connection = sqlite3.connect(
            f"file:{quote_from_bytes(os.fsencode(path))}?mode=rw",
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


class told:  # noqa: N801  used as a verb: `with told(path):`
    """Replace SQLite's errors about the file, not those about a statement, by errors with a message for a person.

    A class, because a generator-based context manager costs several times as much, and a commit uses up to three.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        better = explain(error, self._path)
        if better is not None:
            raise better from error


def explain(error: BaseException | None, path: Path) -> Exception | None:
    """The error to raise in place of `error`; None if that is not about the file."""
    if not isinstance(error, sqlite3.Error):
        return None
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
            told_as = _cannot_open(path)
        case sqlite3.SQLITE_IOERR:
            told_as = errors.StoreDisk(where, str(error))
    return told_as


def _cannot_open(path: Path) -> Exception:
    if descriptors.are_short():
        return errors.StoreUnavailable(f"The database {path} cannot be opened now.", hint=str(OutOfDescriptors()))
    return errors.StoreReadOnly(str(path)) if path.exists() else errors.StoreMissing(str(path))


class TransactionEnded(Exception):
    """A function swallowed an error that had ended its transaction: what it wrote before is lost."""

    def __init__(self) -> None:
        super().__init__("a statement ended the transaction, and its function went on as if nothing had happened")


class SqliteConnection:
    """A writing connection with its fair lock; one thread at a time uses it."""

    def __init__(self, path: Path, make: MakeScope) -> None:
        self.path = path
        self.raw = connect(path)
        try:
            _need_schema(self.raw, path)
            db = SqliteDb(self.raw)
            self.scopes = Scopes(db, make)
            self.guard = SchemaGuard(str(path), db)
            with told(path):
                # The version is read first: a migration between the two is then noticed by the next transaction.
                self._seen: int = self.raw.execute("PRAGMA user_version").fetchone()[0]
                self.guard.check()
                self.files = DatabaseFiles(path, self.raw.execute(MARK).fetchone()[0])
            self._fair_lock = fair_lock_of(path)
        except BaseException:
            self.raw.close()
            raise

    def begin(self) -> None:
        """Take the write lock, fairly among processes, and check that the schema still fits this program."""
        if not self._fair_lock.enter(at_most=BUSY_SECONDS):
            raise errors.StoreBusy(str(self.path))
        try:
            with told(self.path):
                self.files.check_content()
                self.raw.execute("BEGIN IMMEDIATE")
                # Migrations change the user version: an unchanged one means an unchanged schema, and costs less to ask.
                if self.raw.execute("PRAGMA user_version").fetchone()[0] != self._seen:
                    self.guard.check()
        except BaseException:
            self.rollback()
            raise

    def commit(self) -> None:
        crash_point(CrashPoint.STORE_BEFORE_COMMIT)
        try:
            self.files.check()
            with told(self.path):
                self.raw.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        crash_point(CrashPoint.STORE_AFTER_COMMIT)

    def leave(self) -> None:
        """Release the fair lock for the next writer; `SqliteStore` delivers its answers first, to have them sooner."""
        self._fair_lock.leave()

    def rollback(self) -> None:
        try:
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")
        finally:
            self._fair_lock.leave()

    def run(self, city: str, fn: Work) -> tuple[Any, frozenset[str]]:
        """Run `fn` in the open transaction; returns its value and the wake-ups to send.

        Raises TransactionEnded if the transaction has ended when `fn` returns.
        """
        scope = self.scopes.of(city)
        with told(self.path):
            value = fn(scope)
        if not self.raw.in_transaction:
            raise TransactionEnded
        return value, scope.take_wakes()

    def alone(self, city: str, fn: Work) -> tuple[Any, frozenset[str]]:
        """Run one function in one transaction; returns its value and the wake-ups to send."""
        self.begin()
        try:
            done = self.run(city, fn)
        except BaseException:
            self.rollback()
            raise
        self.commit()
        self.leave()
        return done

    def close(self) -> None:
        close_or_abandon(self.raw, self.files)
        self._fair_lock.close()


def _need_schema(connection: sqlite3.Connection, path: Path) -> None:
    with told(path):
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_level'").fetchone()
    if found is None:
        raise errors.StoreOld(str(path), 0, PROGRAM)


def read_whole(raw: sqlite3.Connection, scope: Scope, guard: SchemaGuard, fn: Work) -> Any:
    """Run one function on one snapshot; the connection must refuse writes."""
    raw.execute("BEGIN")
    try:
        guard.check()
        return fn(scope)
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK")


def fair_lock_of(path: Path) -> FairLock:
    try:
        return FairLock(path)
    except OSError as error:
        raise errors.StoreReadOnly(str(path)) from error
