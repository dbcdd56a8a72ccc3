"""One connection to PostgreSQL: how it is opened, how its errors are explained, and one transaction on it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import orjson
import psycopg
from psycopg.rows import dict_row

from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.masking import masked
from lamplighter.store import errors
from lamplighter.store.engine.db import Params, Row
from lamplighter.store.engine.deferred import DeferredWrites, HeldBack, NotAsExpected, Write
from lamplighter.store.engine.dialect import POSTGRES
from lamplighter.store.engine.hints import Hints
from lamplighter.store.engine.schema import PROGRAM, SchemaGuard
from lamplighter.store.engine.scope import MakeScope, Scopes, Work

CONNECT_SECONDS = 10
PIPELINED = 3
"""From this many statements on, they are sent without waiting for the answer to each."""
CHECK_SECONDS = 1.0
PLANS_FIRST = 8
"""After this many transactions a connection discards its query plans, and again each time the number has doubled. A
plan made while a table was small would read the whole table for as long as the connection lasts. That includes the
plans of foreign key checks, which we do not make ourselves."""
LOCK_MILLIS = 10_000
"""The longest wait for a row lock: transactions are short, so one that holds a lock that long hangs."""
LOCK_MILLIS_IN_A_GROUP = 50
"""A function of a group that waits longer for a row lock is run again alone, so that it delays no other commit."""

COSTS = "SET random_page_cost = 1.1"
"""Rows are found in memory or on a disk without moving parts: an index costs little more than reading in order."""
BY_INDEX = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"
"""For transactions that write. While a table grows, plans made for a small one read all of it: in changes of rows given
as a list or found by a search, and in the checks of foreign keys (decision 10). JIT is off because a table that has to
be read whole is then estimated as so costly that the server would compile the statement, which takes longer than to run
it."""
AS_SERVER = """
    ;SET LOCAL enable_seqscan TO DEFAULT;SET LOCAL enable_hashjoin TO DEFAULT;SET LOCAL enable_mergejoin TO DEFAULT
    ;SET LOCAL jit TO DEFAULT"""
"""For reading on a connection that also writes: the server chooses how to make lists, counts and charts."""

# Errors that a new try may cure: caused by another transaction's locks or timing, never by the statement itself.
PASSING = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
LOST = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,  # the server has cut the connection
)


class PostgresDb:
    """The connection as repositories see it. Every other statement first sends the writes that were held back."""

    __slots__ = ("_held", "at_once", "connection", "dialect", "hints")

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self.connection = connection
        self.dialect = POSTGRES
        self.hints = Hints()
        self.at_once = False
        """Hold no write back: set while a transaction is run again after NotAsExpected."""
        self._held = DeferredWrites()

    def rows(self, sql: str, params: Params) -> list[Row]:
        return list(self._ask(sql, params).fetchall())

    def row(self, sql: str, params: Params) -> Row | None:
        return self._ask(sql, params).fetchone()

    def execute(self, sql: str, params: Params) -> int:
        return self._ask(sql, params).rowcount

    def write(self, write: Write, city: str, params: Params) -> bool:
        if self.at_once:
            return self._write_one(write, city, params).rowcount > 0
        if not self._held.add(write, city, params):
            self.send()
            self._held.add(write, city, params)
        return True

    def write_new(self, write: Write, city: str, rows: Sequence[Params]) -> set[Any]:
        if self._held:
            self.send()
        given = {"city": city, "rows": _as_list(write, list(rows))}
        written = self.connection.execute(_new(write), given, prepare=True).fetchall()
        return {value for row in written for value in row.values()}

    def send(self) -> None:
        """Send the writes held back. Raises NotAsExpected if one that must change its row did not."""
        held = self._held.take()
        if len(held) < PIPELINED:
            sent = [self._write(one) for one in held]
        else:
            with self.connection.pipeline():  # one round trip for all
                sent = [self._write(one) for one in held]
        for one, cursor in zip(held, sent, strict=True):
            if one.write.must and cursor.rowcount != len(one.rows):
                raise NotAsExpected(one.write)

    def drop(self) -> None:
        """Discard the writes held back: their transaction is rolled back."""
        self._held.take()

    def _write(self, held: HeldBack) -> psycopg.Cursor[dict[str, Any]]:
        if len(held.rows) == 1:
            return self._write_one(held.write, held.city, held.rows[0])
        given = {"city": held.city, "rows": _as_list(held.write, held.rows)}
        return self.connection.execute(_many(held.write), given, prepare=True)

    def _write_one(self, write: Write, city: str, params: Params) -> psycopg.Cursor[dict[str, Any]]:
        # Prepared from the first time on: by default psycopg prepares at the sixth use, and then takes the statement
        # for prepared even if the server skipped it, because a statement before it in the pipeline had failed.
        return self.connection.execute(_query(write), {"city": city, **write.encoded(params)}, prepare=True)

    def _ask(self, sql: str, params: Params) -> psycopg.Cursor[dict[str, Any]]:
        if self._held:
            self.send()
        return self.connection.execute(_query(sql), params or None)

    def execute_many(self, sql: str, params: list[Params]) -> None:
        self.send()
        with self.connection.cursor() as cursor:
            cursor.executemany(_query(sql), params)


def _as_list(write: Write, rows: list[Params]) -> str:
    try:
        return orjson.dumps(rows).decode()
    except TypeError:  # only the json module takes lone surrogates and integers beyond 64 bits
        return orjson.dumps([write.encoded(row) for row in rows]).decode()


def _query(sql: str) -> bytes:
    return POSTGRES.render(sql).encode()


@cache
def _new(write: Write) -> bytes:
    return POSTGRES.render(write.for_new()).encode()


@cache
def _many(write: Write) -> bytes:
    return POSTGRES.render(write.for_many()).encode()


def connect(url: str, *, application: str = "lamplighter", settings: str = "") -> psycopg.Connection[dict[str, Any]]:
    """Open a connection and apply `settings`. Raises StoreUnavailable, also if it breaks in between."""
    connection = _connected(url, application)
    if settings:
        try:
            with told(url):
                connection.execute(settings.encode())
        except BaseException:
            connection.close()
            raise
    return connection


def _connected(url: str, application: str) -> psycopg.Connection[dict[str, Any]]:
    try:
        return psycopg.connect(
            url,
            autocommit=True,  # BEGIN and COMMIT are explicit, for as few round trips as possible
            row_factory=dict_row,
            connect_timeout=CONNECT_SECONDS,
            application_name=application,
            keepalives=1,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
    except psycopg.Error as error:  # of any kind: a server that is starting or stopping raises various ones
        raise unreachable(url, error) from error


def unreachable(url: str, error: Exception) -> errors.StoreUnavailable:
    detail = masked(" ".join(str(error).split()))
    return errors.StoreUnavailable(
        f"The database {masked(url)} cannot be reached: {detail}.",
        hint="Check that PostgreSQL runs there and that [store] url (or LAMP_STORE_URL) is right.",
    )


@contextmanager
def told(url: str) -> Iterator[None]:
    """Replace errors about the server, not those about a statement, by errors with a message for a person."""
    try:
        yield
    except psycopg.Error as error:
        better = explain(error, url)
        if better is not None:
            raise better from error
        raise


def explain(error: BaseException, url: str) -> Exception | None:
    """The error to raise in place of `error`; None if that is not about the server, or a new try may cure it."""
    where = masked(url)
    better: Exception | None = None
    match error:
        case psycopg.errors.UndefinedTable() if "schema_level" in str(error):
            better = errors.StoreOld(where, 0, PROGRAM)
        case psycopg.errors.DuplicatePreparedStatement() | psycopg.errors.InvalidSqlStatementName():
            better = errors.PooledByTransaction(where)  # the statements are those of another session
        case psycopg.errors.DiskFull():
            better = errors.StoreFull(where)
        case psycopg.errors.ReadOnlySqlTransaction():
            better = errors.ServerReadOnly(where)
        case psycopg.errors.InsufficientPrivilege():
            better = errors.StoreRefused(where, masked(" ".join(str(error).split())))
        case _ if isinstance(error, LOST) and not isinstance(error, PASSING):
            better = unreachable(url, error)
    return better


class PostgresConnection:
    """A connection with a scope for each city it has served; one thread at a time uses it."""

    def __init__(self, url: str, make: MakeScope, *, writes: bool = True) -> None:
        self.url = url
        self.raw = connect(url, settings=f"SET lock_timeout = {LOCK_MILLIS}; {COSTS}; {BY_INDEX if writes else ''}")
        self._to_read = f" READ ONLY, ISOLATION LEVEL REPEATABLE READ{AS_SERVER if writes else ''}"
        self.db = PostgresDb(self.raw)
        self.scopes = Scopes(self.db, make)
        self._guard = SchemaGuard(masked(url), self.db)
        self._checked = float("-inf")
        self._begun = 0
        self._plans_until = PLANS_FIRST

    def begin(self, *, in_group: bool = False, read_only: bool = False) -> None:
        """Begin in one round trip; at most once a second, also check that the schema still fits this program."""
        mode = self._to_read if read_only else ""
        limit = f";SET LOCAL lock_timeout = {LOCK_MILLIS_IN_A_GROUP}" if in_group else ""
        try:
            with told(self.url):
                self._plan_anew()
                self.raw.execute(f"BEGIN{mode}{limit}".encode())
                if time.monotonic() >= self._checked + CHECK_SECONDS:
                    self._guard.check()
                    self._checked = time.monotonic()
        except BaseException:
            self._rollback_if_open()  # else the connection would stay in a failed transaction
            raise

    def _plan_anew(self) -> None:
        self._begun += 1
        if self._begun >= self._plans_until:
            self._plans_until = self._begun * 2
            self.raw.execute("DISCARD PLANS")

    def commit(self) -> None:
        """Send the writes held back and commit. Raises CommitUnknown if the connection breaks before the answer."""
        with told(self.url):
            self.db.send()
        crash_point(CrashPoint.STORE_BEFORE_COMMIT)
        try:
            with told(self.url):
                self.raw.execute("COMMIT")
        except Exception as error:
            if not self.usable:
                raise errors.CommitUnknown(masked(self.url)) from error
            raise
        crash_point(CrashPoint.STORE_AFTER_COMMIT)

    def rollback(self) -> None:
        self.db.drop()
        if not self.raw.closed:
            self.raw.execute("ROLLBACK")

    def alone(self, city: str, fn: Work, *, tries: int = 5) -> tuple[Any, frozenset[str]]:
        """Run one function in one transaction, again after a deadlock, a serialization failure or NotAsExpected.

        Raises StoreBusy when the tries are used up, and at once when a lock was not granted in time.
        """
        try:
            return self._alone(city, fn, tries)
        finally:
            self.db.at_once = False

    def _alone(self, city: str, fn: Work, tries: int) -> tuple[Any, frozenset[str]]:
        for left in range(tries - 1, -1, -1):
            self.begin()
            scope = self.scopes.of(city)
            try:
                with told(self.url):
                    value = fn(scope)
                self.commit()
            except NotAsExpected:
                self._rollback_if_open()
                self.db.at_once = True
            except psycopg.errors.LockNotAvailable as error:
                self._rollback_if_open()
                raise errors.StoreBusy(masked(self.url)) from error
            except PASSING as error:
                self._rollback_if_open()
                if not left:
                    raise errors.StoreBusy(masked(self.url)) from error
            except BaseException:
                self._rollback_if_open()
                raise
            else:
                return value, scope.take_wakes()
        raise AssertionError("the last try returns or raises")

    def check(self) -> None:
        """Raises StoreUnavailable if the server or its schema is unfit."""
        self.begin(read_only=True)
        self._rollback_if_open()

    def read(self, city: str, fn: Work) -> Any:
        self.begin(read_only=True)
        try:
            with told(self.url):
                value = fn(self.scopes.of(city))
                self.db.send()  # so that the server refuses held back writes
                return value
        finally:
            self._rollback_if_open()

    def _rollback_if_open(self) -> None:
        try:
            self.rollback()
        except psycopg.Error:  # the server rolls back by itself when a connection breaks
            self.raw.close()

    @property
    def usable(self) -> bool:
        return not (self.raw.closed or self.raw.broken)

    def close(self) -> None:
        self.raw.close()
