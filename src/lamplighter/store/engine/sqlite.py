"""A SQLite file: one writer thread that commits waiting transactions in groups, and reader threads."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from lamplighter.store import errors
from lamplighter.store.engine.batching import batches, run_batch
from lamplighter.store.engine.city_wakes import CityTopics, CityWakes
from lamplighter.store.engine.jobs import Answer, Job, Outcome, Trouble, deliver, passable
from lamplighter.store.engine.schema import SchemaGuard
from lamplighter.store.engine.scope import MakeScope, Scopes, Work
from lamplighter.store.engine.sqlite_connection import SqliteConnection, SqliteDb, connect, explain, read_whole, told
from lamplighter.store.engine.sqlite_files import close_or_abandon

GROUP_SIZE = 256
GROUP_SECONDS = 0.025
AT_ONCE = 64
READERS = 4
SAVE_TRIES = 10


class SqliteDatabase:
    def __init__(self, path: Path, make: MakeScope) -> None:
        self._path = path
        self._make = make
        self.wakes = CityWakes()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._connection = SqliteConnection(path, make)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="lamp-read")
        self._local = threading.local()
        self._opened: list[_Reader] = []
        self._closed = False
        self._trouble = Trouble()
        self._writer = threading.Thread(target=self._write, name="lamp-write", daemon=True)
        self._writer.start()

    def transact(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        if self._closed:
            raise RuntimeError("the store is closed")
        answer = Answer(loop=asyncio.get_running_loop())
        self._jobs.put(Job(city, fn, args, kwargs, answer))
        return answer

    def read(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[Any]:
        work = partial(self._read, city, lambda scope: fn(scope, *args, **kwargs))
        return asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def clock_offset(self) -> timedelta:
        return timedelta(0)  # the database is a file here: its clock is this machine's

    async def close(self) -> None:
        """Finish what was handed in for all cities, then close every connection."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for reader in self._opened:
            close_or_abandon(reader.raw, self._connection.files)
        self._connection.close()

    @property
    def trouble(self) -> str | None:
        return self._trouble.lately

    def check(self) -> None:
        """Raises StoreGone when the file was deleted, moved, replaced or overwritten since it was opened."""
        self._connection.files.check_content()

    async def save_copy(self, to: Path) -> None:
        """Save all that can still be read as a new file, when the database file is gone. Raises StoreUnavailable."""
        await asyncio.to_thread(self._save_copy, to)

    def _save_copy(self, to: Path) -> None:
        """Try several times: the writer may be in the middle of a transaction, which it will roll back."""
        for left in range(SAVE_TRIES - 1, -1, -1):
            try:
                return self._connection.files.save_copy(self._connection.raw, to)
            except sqlite3.Error as error:
                if not left:
                    raise errors.StoreUnavailable(f"The database cannot be saved as {to}: {error}.") from error
            time.sleep(GROUP_SECONDS)
        return None

    def _reader(self) -> "_Reader":
        """The thread's own reader, opened when first needed: a file missing for a moment disables no thread."""
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _Reader(self._path, self._make)
            self._opened.append(reader)
        return reader

    def _read(self, city: str, fn: Work) -> Any:
        self._connection.files.check()
        reader = self._reader()
        try:
            with told(self._path):
                return read_whole(reader.raw, reader.scopes.of(city), reader.guard, fn)
        except StopIteration as error:
            raise passable(error) from error

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            taken: list[Job] = [job]
            wakes = CityTopics()
            try:
                outcomes = self._group(taken, wakes)
            except BaseException as error:  # noqa: BLE001  the thread is the edge: every error belongs to its caller
                outcomes, wakes = self._one_by_one(taken, error)
                self._trouble.note(outcomes)
                deliver(outcomes)
            else:
                deliver(outcomes)
                self._connection.leave()
            self.wakes.publish(wakes)

    def _group(self, taken: list[Job], wakes: CityTopics) -> list[Outcome]:
        """One commit for the one job in `taken` and for the jobs that wait behind it, which are added to `taken`."""
        connection = self._connection
        connection.begin()
        outcomes: list[Outcome] = []
        try:
            self._waiting(AT_ONCE - 1, taken)
            fresh = list(taken)
            if len(fresh) == 1:  # no other job to protect from it, so it needs no savepoint
                value, asked = connection.run(taken[0].city, taken[0].run)
                outcomes.append(Outcome(taken[0], value=value))
                wakes.add(taken[0].city, asked)
                fresh = []
            until = time.monotonic() + GROUP_SECONDS
            while fresh := fresh or self._waiting(AT_ONCE, taken):
                for batch in batches(fresh):
                    outcomes += self._batch(batch, wakes)
                fresh = []
                if len(outcomes) >= GROUP_SIZE or time.monotonic() >= until:
                    break
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        return outcomes

    def _waiting(self, most: int, taken: list[Job]) -> list[Job]:
        """The jobs that wait now, up to `most`; they are added to `taken` before any of them can fail."""
        fresh: list[Job] = []
        while len(fresh) < most:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)  # the end mark: put back for `_write`, which sees it after this group
                break
            fresh.append(job)
        taken += fresh
        return fresh

    def _batch(self, jobs: list[Job], wakes: CityTopics) -> list[Outcome]:
        """Run the jobs in one go; if that fails, each in its own savepoint, so that each gets its own answer."""
        if len(jobs) == 1:
            return [self._in_savepoint(jobs[0], wakes)]
        raw, scope = self._connection.raw, self._connection.scopes.of(jobs[0].city)
        raw.execute("SAVEPOINT batch")
        try:
            outcomes = run_batch(scope, jobs)
        except BaseException:  # noqa: BLE001  the single savepoints show whose error it is
            raw.execute("ROLLBACK TO batch")
            raw.execute("RELEASE batch")
            return [self._in_savepoint(job, wakes) for job in jobs]
        raw.execute("RELEASE batch")
        wakes.add(scope.city, scope.take_wakes())
        return outcomes

    def _in_savepoint(self, job: Job, wakes: CityTopics) -> Outcome:
        """Raises GroupLost when the transaction around the savepoint has ended."""
        raw, scope = self._connection.raw, self._connection.scopes.of(job.city)
        try:
            raw.execute("SAVEPOINT one")
            try:
                value = job.run(scope)
            except BaseException as error:  # noqa: BLE001  it belongs to its caller
                raw.execute("ROLLBACK TO one")
                raw.execute("RELEASE one")
                return Outcome(job, error=explain(error, self._path) or error)
            raw.execute("RELEASE one")
        except sqlite3.Error as error:
            raise GroupLost from error  # a statement ended the whole transaction, not only this function
        wakes.add(scope.city, scope.take_wakes())
        return Outcome(job, value=value)

    def _one_by_one(self, jobs: list[Job], error: BaseException) -> tuple[list[Outcome], CityTopics]:
        """The group's transaction was lost: run each function in its own, so that each gets its own answer."""
        if len(jobs) == 1:
            return [Outcome(jobs[0], error=error)], CityTopics()
        wakes = CityTopics()
        redone = []
        for job in jobs:
            try:
                value, asked = self._connection.alone(job.city, job.run)
            except BaseException as failure:  # noqa: BLE001  as above
                redone.append(Outcome(job, error=failure))
            else:
                redone.append(Outcome(job, value=value))
                wakes.add(job.city, asked)
        return redone, wakes


class _Reader:
    """A connection that refuses writes; one thread uses it."""

    def __init__(self, path: Path, make: MakeScope) -> None:
        self.raw = connect(path, read_only=True)
        db = SqliteDb(self.raw)
        self.scopes = Scopes(db, make)
        self.guard = SchemaGuard(str(path), db)


class GroupLost(Exception):
    """A statement of one function ended the transaction of its whole group."""

    def __init__(self) -> None:
        super().__init__("the group's transaction was ended")
