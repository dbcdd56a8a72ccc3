"""The embedded store: one writer thread that commits together what waits together, and readers of their own."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from lamplighter.store.datagrams import Datagrams
from lamplighter.store.jobs import Answer, Job, Outcome, deliver, passable
from lamplighter.store.schema import SchemaGuard
from lamplighter.store.sqlite_connection import (
    SqliteConnection,
    SqliteDb,
    connect,
    explain,
    read_whole,
    told,
)
from lamplighter.store.tx import Tx
from lamplighter.store.wakes import Wakes

P = ParamSpec("P")
R = TypeVar("R")

GROUP_SIZE = 256
GROUP_SECONDS = 0.025
READERS = 4


class SqliteStore:
    def __init__(self, path: Path, city: str, *, wakes: Wakes, datagrams: Datagrams) -> None:
        self._path = path
        self._city = city
        self._wakes = wakes
        self._datagrams = datagrams
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._connection = SqliteConnection(path, city)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="lamp-read")
        self._local = threading.local()
        self._opened: list[_Reader] = []
        self._closed = False
        self._writer = threading.Thread(target=self._write, name="lamp-write", daemon=True)
        self._writer.start()

    async def transact(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self._closed:
            raise RuntimeError("the store is closed")
        answer = Answer(loop=asyncio.get_running_loop())
        self._jobs.put(Job(fn, args, kwargs, answer))
        value: R = await answer
        return value

    async def read(self, fn: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        value: R = await loop.run_in_executor(self._readers, self._read, lambda tx: fn(tx, *args, **kwargs))
        return value

    async def clock_offset(self) -> timedelta:
        return timedelta(0)  # the database is a file here: its clock is this machine's

    async def close(self) -> None:
        """Finish what was handed in, then close every connection."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for reader in self._opened:
            reader.raw.close()
        self._connection.close()
        self._datagrams.close()

    def _reader(self) -> "_Reader":
        """The thread's own, opened when first needed: a file away for a moment spoils no thread for ever."""
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _Reader(self._path, self._city)
            self._opened.append(reader)
        return reader

    def _read(self, fn: Callable[[Tx], Any]) -> Any:
        reader = self._reader()
        try:
            with told(self._path):
                return read_whole(reader.raw, reader.tx, reader.guard, fn)
        except StopIteration as error:
            raise passable(error) from error

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            outcomes: list[Outcome] = []
            wakes: set[str] = set()
            try:
                self._group(job, outcomes, wakes)
            except BaseException as error:  # noqa: BLE001  the thread is the edge: every error belongs to its caller
                outcomes, wakes = self._one_by_one(job, outcomes, error)
                deliver(outcomes)
            else:
                deliver(outcomes)
                self._connection.leave()
            self._announce(frozenset(wakes))

    def _group(self, first: Job, outcomes: list[Outcome], wakes: set[str]) -> None:
        """One commit for `first` and what waits behind it."""
        connection = self._connection
        connection.begin()
        try:
            # Before others join there is nothing to protect from the first function, so it needs no savepoint.
            outcomes.append(Outcome(first, value=connection.run(first.run)))
            wakes |= connection.tx.take_wakes()
            until = time.monotonic() + GROUP_SECONDS
            while len(outcomes) < GROUP_SIZE and time.monotonic() < until:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    self._jobs.put(None)  # the end of the queue: for the loop to see, once this group is done
                    break
                outcomes.append(self._in_savepoint(job, wakes))
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def _in_savepoint(self, job: Job, wakes: set[str]) -> Outcome:
        """Raises GroupLost, with the job, whenever the transaction around the savepoint is no more."""
        raw, tx = self._connection.raw, self._connection.tx
        try:
            raw.execute("SAVEPOINT one")
            try:
                value = job.run(tx)
            except BaseException as error:  # noqa: BLE001  it belongs to its caller
                tx.take_wakes()
                raw.execute("ROLLBACK TO one")
                raw.execute("RELEASE one")
                return Outcome(job, error=explain(error, self._path) or error)
            raw.execute("RELEASE one")
        except sqlite3.Error as error:
            raise GroupLost(job) from error  # a statement ended the whole transaction, not only this function
        wakes |= tx.take_wakes()
        return Outcome(job, value=value)

    def _one_by_one(self, first: Job, outcomes: list[Outcome], error: BaseException) -> tuple[list[Outcome], set[str]]:
        """The group's transaction was lost: give every function one of its own, so each gets its own answer."""
        if not outcomes:
            return [Outcome(first, error=error)], set()
        jobs = [outcome.job for outcome in outcomes]
        if isinstance(error, GroupLost):
            jobs.append(error.job)
        wakes: set[str] = set()
        redone = []
        for job in jobs:
            try:
                value, asked = self._connection.alone(job.run)
            except BaseException as failure:  # noqa: BLE001  as above
                redone.append(Outcome(job, error=failure))
            else:
                redone.append(Outcome(job, value=value))
                wakes |= asked
        return redone, wakes

    def _announce(self, topics: frozenset[str]) -> None:
        self._wakes.publish(topics)
        self._datagrams.send(topics)


class _Reader:
    """A connection that refuses writes; one thread uses it."""

    def __init__(self, path: Path, city: str) -> None:
        self.raw = connect(path, read_only=True)
        self.tx = Tx(SqliteDb(self.raw), city)
        self.guard = SchemaGuard(str(path), self.tx.db)


class GroupLost(Exception):
    """A statement of one function ended the transaction of its whole group."""

    def __init__(self, job: Job) -> None:
        super().__init__("the group's transaction was ended")
        self.job = job
