"""A PostgreSQL database: our threads that commit waiting transactions in groups, and a notifier for wake-ups.

A group is first run without savepoints, which cost a round trip each; if one of its functions fails, the group is run
again with them. A function that has to wait for another transaction's lock is taken out and run alone.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg

from lamplighter.kit import log
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.masking import masked
from lamplighter.store import errors
from lamplighter.store.engine.batching import batches, run_batch
from lamplighter.store.engine.city_wakes import CityTopics, CityWakes
from lamplighter.store.engine.deferred import NotAsExpected
from lamplighter.store.engine.job_pool import JobPool
from lamplighter.store.engine.jobs import Answer, Job, Outcome, Trouble, deliver
from lamplighter.store.engine.notifier import NO_CITY, Notifier, announce
from lamplighter.store.engine.postgres_commit import TracedCall
from lamplighter.store.engine.postgres_connection import LOST, PASSING, PostgresConnection, explain, told
from lamplighter.store.engine.scope import MakeScope, Scope, Work

WRITERS = 4
READERS = 4
GROUP_SIZE = 128
RECONNECTS = 3
TO_BE_ALONE = (*PASSING, NotAsExpected)


class PostgresDatabase:
    def __init__(self, url: str, make: MakeScope) -> None:
        self._writes = JobPool()
        self._reads = JobPool()
        self._trouble = Trouble()
        first = Line(url, make)  # opened now, to fail at once if the server or its schema is unfit
        try:
            first.open().check()
        except BaseException:
            first.close()
            raise
        self.wakes = CityWakes()
        self._notifier = Notifier(url, make, self.wakes)
        writers = [first, *(Line(url, make) for _ in range(WRITERS - 1))]
        self._threads = [_thread(self._write, line) for line in writers]
        self._threads += [_thread(self._serve_reads, Line(url, make, writes=False)) for _ in range(READERS)]
        self._closed = False

    @property
    def trouble(self) -> str | None:
        return self._trouble.lately

    def transact(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        return self._answer(self._writes, city, fn, args, kwargs)

    def read(self, city: str, fn: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        return self._answer(self._reads, city, fn, args, kwargs)

    async def clock_offset(self) -> timedelta:
        clock = SystemClock()
        before = clock.now()
        theirs: datetime = await self.read(NO_CITY, _server_time, (), {})
        return theirs - (before + (clock.now() - before) / 2)

    async def close(self) -> None:
        """Finish what was handed in for all cities, then close every connection."""
        if self._closed:
            return
        self._closed = True
        self._writes.close()
        self._reads.close()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        await asyncio.to_thread(self._notifier.close)

    def _answer(self, jobs: JobPool, city: str, fn: Work, args: Any, kwargs: Any) -> Answer:
        if self._closed:
            raise RuntimeError("the store is closed")
        answer = Answer(loop=asyncio.get_running_loop())
        jobs.put(Job(city, fn, args, kwargs, answer))
        return answer

    def _serve_reads(self, line: "Line") -> None:
        while jobs := self._reads.take(1):
            deliver([_outcome(job, partial(_read, line, job), line) for job in jobs])
            self._reads.done()
        line.close()

    def _write(self, line: "Line") -> None:
        while jobs := self._writes.take(GROUP_SIZE):
            later = jobs
            if len(jobs) > 1:
                later = self._group(line, jobs)
                self._writes.done()  # the rest may wait for locks; other jobs should not wait with it
            for late in later:
                wakes = CityTopics()
                self._settle([_outcome(late, partial(_alone, line, late, wakes), line)], wakes)
            self._writes.done()
        line.close()

    def _settle(self, outcomes: list[Outcome], wakes: CityTopics) -> None:
        self._trouble.note(outcomes)
        deliver(outcomes)
        self._notifier.post(wakes)

    def _group(self, line: "Line", jobs: list[Job]) -> list[Job]:
        """Commit and answer `jobs` together; returns those to run alone: they block others, or the group failed."""
        for savepoints in (False, True):
            wakes = CityTopics()
            try:
                outcomes = _together(line, jobs, wakes, savepoints=savepoints)
            except errors.CommitUnknown as error:
                self._settle([Outcome(job, error=error) for job in jobs], CityTopics())
                return []
            except BaseException as error:  # noqa: BLE001  one of them failed: savepoints show which
                if savepoints and line.lost():  # none would succeed alone, and each would wait for the server
                    told_as = explain(error, line.url) or error
                    self._settle([Outcome(job, error=told_as) for job in jobs], CityTopics())
                    return []
                continue
            answered = [outcome for outcome in outcomes if not isinstance(outcome.error, TO_BE_ALONE)]
            self._settle(answered, wakes)
            return [outcome.job for outcome in outcomes if isinstance(outcome.error, TO_BE_ALONE)]
        return jobs


def _together(line: "Line", jobs: list[Job], wakes: CityTopics, *, savepoints: bool) -> list[Outcome]:
    """One transaction for all jobs. After any error but CommitUnknown, nothing of it was committed."""
    connection = line.open()
    connection.begin(in_group=True)
    try:
        if savepoints:
            outcomes = [_in_savepoint(connection, job, wakes) for job in jobs]
        else:
            outcomes = [done for batch in batches(jobs) for done in _plainly(connection, batch, wakes)]
        connection.commit()
    except BaseException:
        line.rollback()
        raise
    return outcomes


def _plainly(connection: PostgresConnection, batch: list[Job], wakes: CityTopics) -> list[Outcome]:
    scope = connection.scopes.of(batch[0].city)
    outcomes = run_batch(scope, batch) if len(batch) > 1 else [Outcome(batch[0], value=batch[0].run(scope))]
    wakes.add(scope.city, scope.take_wakes())
    return outcomes


def _in_savepoint(connection: PostgresConnection, job: Job, wakes: CityTopics) -> Outcome:
    scope = connection.scopes.of(job.city)
    connection.raw.execute("SAVEPOINT one")
    try:
        with told(connection.url):
            value = job.run(scope)
            connection.db.send()
    except BaseException as error:  # noqa: BLE001  it belongs to its caller
        connection.db.drop()
        connection.raw.execute("ROLLBACK TO one")
        return Outcome(job, error=error)
    connection.raw.execute("RELEASE one")
    wakes.add(scope.city, scope.take_wakes())
    return Outcome(job, value=value)


def _thread(work: Callable[["Line"], None], line: "Line") -> threading.Thread:
    thread = threading.Thread(target=work, args=(line,), name=f"lamp-{work.__name__.strip('_')}", daemon=True)
    thread.start()
    return thread


def _alone(line: "Line", job: Job, wakes: CityTopics) -> Any:
    value, asked = line.open().alone(job.city, job.run)
    wakes.add(job.city, asked)
    return value


def _read(line: "Line", job: Job) -> Any:
    return line.open().read(job.city, job.run)


def _outcome(job: Job, call: Callable[[], Any], line: "Line") -> Outcome:
    """The outcome of `call`, which is repeated if the connection broke, unless a commit was under way."""
    for left in range(RECONNECTS - 1, -1, -1):
        try:
            return Outcome(job, value=call())
        except errors.CommitUnknown as error:
            return Outcome(job, error=error)
        except (errors.StoreUnavailable, *LOST) as error:
            if left and line.lost():
                time.sleep(0.05)
                continue
            return Outcome(job, error=explain(error, line.url) or error)
        except BaseException as error:  # noqa: BLE001  the thread is the edge: every error belongs to its caller
            return Outcome(job, error=error)
    raise AssertionError("the last try returns")


def _server_time(scope: Scope) -> datetime:
    row = scope.db.row("SELECT clock_timestamp() AS now", {})
    if row is None:
        raise AssertionError("a row always comes back")
    now: datetime = row["now"]
    return now.astimezone(UTC)


class Line:
    """One thread's connection, opened when first needed, and reopened after it broke."""

    def __init__(self, url: str, make: MakeScope, *, writes: bool = True) -> None:
        self.url = url
        self._make = make
        self._writes = writes
        self._connection: PostgresConnection | None = None

    def open(self) -> PostgresConnection:
        if self._connection is None or not self._connection.usable:
            self._connection = PostgresConnection(self.url, self._make, writes=self._writes)
        return self._connection

    def lost(self) -> bool:
        return self._connection is None or not self._connection.usable

    def rollback(self) -> None:
        if self._connection is None:
            return
        try:
            self._connection.rollback()
        except psycopg.Error as error:
            log.get().warning("store.connection_lost", url=masked(self.url), error=str(error))
            self._connection.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class PostgresDirect:
    """One connection on the caller's thread, for commands; one that broke is replaced at the next call."""

    def __init__(self, url: str, make: MakeScope) -> None:
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # its warnings stand beside errors that are told anyway
        self.wakes = CityWakes()
        self.line = Line(url, make)
        self.line.open()

    def transact(self, city: str, fn: Work) -> Any:
        traced = TracedCall(fn)
        try:
            value, wakes = self.line.open().alone(city, traced)
        except errors.CommitUnknown as unknown:
            unknown.settle = partial(self._settle, city, traced)
            raise
        self._announce(city, wakes)
        return value

    def read(self, city: str, fn: Work) -> Any:
        return self.line.open().read(city, fn)

    def close(self) -> None:
        self.line.close()

    def _settle(self, city: str, traced: TracedCall) -> errors.Settled:
        """Ask what became of a commit whose answer was lost. Raises StoreUnavailable while that is impossible."""
        took = traced.took(self.line.open())
        if took:
            self._announce(city, traced.wakes)
        return errors.Settled(took, traced.value)

    def _announce(self, city: str, wakes: frozenset[str]) -> None:
        self.wakes.publish({city: wakes})
        with suppress(psycopg.Error, errors.StoreUnavailable):  # it is committed, and waiters also poll
            announce(self.line.open(), {city: wakes})
