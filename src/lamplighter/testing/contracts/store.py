"""The contract of stores: what `transact` and `read` guarantee on every database."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lamplighter.domain.events import TOPIC, Event, EventFilter, NewEvent
from lamplighter.kit.limits import TimeLimit
from lamplighter.store.engine import Wakes
from lamplighter.store.errors import StoreReadOnly
from lamplighter.store.tx import DirectStore, Store, Tx
from lamplighter.store.url import Place, open_direct, open_store

CITY = "cty_contract"
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WITHIN = 120.0
"""The limit of every wait in this suite, in seconds; in a passing test each wait ends at once."""


class Refused(Exception):
    """Raised by the transaction functions of tests."""


def say(tx: Tx, subject: str) -> str:
    tx.events.append(NewEvent("test.said", AT, "tester", subject=subject))
    return subject


def say_and_fail(tx: Tx, subject: str) -> None:
    say(tx, subject)
    raise Refused(subject)


def said(tx: Tx) -> list[str]:
    return [event.subject or "" for event in tx.events.latest(EventFilter(type="test.said"), limit=100_000)]


def appended(tx: Tx) -> int:
    """How many events are committed and visible, numbered or not."""
    row = tx.db.row("SELECT count(*) AS n FROM events", {})
    return 0 if row is None else row["n"]


class Gate:
    """Holds a transaction function midway until the test opens it; uses thread events, as functions run on threads."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def hold(self, tx: Tx, subject: str = "held") -> str:
        say(tx, subject)
        self._reached.set()
        if not self._opened.wait(WITHIN):
            raise TimeoutError("nobody opened the gate")
        return subject

    async def reached(self) -> None:
        if not await asyncio.to_thread(self._reached.wait, WITHIN):
            raise TimeoutError("the function was never run")

    def open(self) -> None:
        self._opened.set()


async def seen(store: Store, wakes: Wakes, count: int) -> list[Event]:
    """Wait for `count` events: on PostgreSQL an event is numbered a moment after the commit. Raises TimeoutError."""
    news = wakes.subscribe(TOPIC)
    try:
        async with TimeLimit(WITHIN):
            while True:
                news.clear()
                found = await store.read(lambda tx: tx.events.after(0, limit=100_000))
                if len(found) >= count:
                    return found
                await news.wait()
    finally:
        wakes.unsubscribe(news)


class StoreContract:
    """Subclasses give the fixture `place`: a migrated, empty database."""

    @pytest.fixture
    def wakes(self) -> Wakes:
        return Wakes()

    @pytest.fixture
    async def store(self, place: Place, wakes: Wakes) -> Any:
        opened = open_store(place, CITY, wakes)
        yield opened
        await opened.close()

    async def test_a_value_comes_back_after_the_commit(self, store: Store, place: Place) -> None:
        assert await store.transact(say, "one") == "one"
        other = open_direct(place, CITY)
        try:
            assert other.read(appended) == 1
        finally:
            other.close()

    async def test_arguments_and_keywords_reach_the_function(self, store: Store) -> None:
        def gather(tx: Tx, one: int, *, two: int) -> tuple[str, int, int]:
            return tx.city, one, two

        assert await store.transact(gather, 1, two=2) == (CITY, 1, 2)
        assert await store.read(gather, 1, two=2) == (CITY, 1, 2)

    async def test_a_function_that_raises_leaves_nothing(self, store: Store) -> None:
        with pytest.raises(Refused):
            await store.transact(say_and_fail, "one")
        assert await store.read(appended) == 0

    async def test_of_many_callers_only_the_failing_ones_are_rolled_back(self, store: Store, wakes: Wakes) -> None:
        calls = [store.transact(say_and_fail if n % 7 == 3 else say, str(n)) for n in range(400)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        failed = {str(n) for n in range(400) if n % 7 == 3}
        assert {str(error) for error in outcomes if isinstance(error, Refused)} == failed
        await seen(store, wakes, 400 - len(failed))
        assert sorted(await store.read(said), key=int) == [str(n) for n in range(400) if str(n) not in failed]

    async def test_a_broken_statement_spoils_nobody_elses_function(self, store: Store) -> None:
        def broken(tx: Tx) -> None:
            say(tx, "broken")
            tx.db.execute("INSERT INTO events (no_such_column) VALUES (1)", {})

        calls = [store.transact(broken) if n % 5 == 0 else store.transact(say, str(n)) for n in range(50)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(outcome, Exception) for outcome in outcomes) == 10
        assert await store.read(appended) == 40

    async def test_a_function_that_raises_stop_iteration_answers_all_the_same(self, store: Store) -> None:
        def exhausted(_tx: Tx) -> None:
            next(iter(()))

        async with TimeLimit(WITHIN):
            outcomes = await asyncio.gather(
                store.transact(exhausted), store.transact(say, "one"), store.read(exhausted), return_exceptions=True
            )
        assert isinstance(outcomes[0], RuntimeError)
        assert outcomes[1] == "one"
        assert isinstance(outcomes[2], RuntimeError)

    async def test_a_function_that_exits_ends_neither_thread_nor_store(self, store: Store) -> None:
        def leaves(_tx: Tx) -> None:
            raise GeneratorExit

        async with TimeLimit(WITHIN):
            outcomes = await asyncio.gather(
                *(store.transact(leaves) for _ in range(8)), *(store.transact(say, "x") for _ in range(8)),
                return_exceptions=True,
            )  # fmt: skip
        assert [type(outcome) for outcome in outcomes] == [GeneratorExit] * 8 + [str] * 8

    async def test_a_cancelled_caller_leaves_only_once_the_commit_is_answered(self, store: Store) -> None:
        gate = Gate()
        task = asyncio.ensure_future(store.transact(gate.hold))
        await gate.reached()
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=0.05)
        assert not done
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.read(appended) == 1

    async def test_a_reader_does_not_wait_for_a_writer(self, store: Store) -> None:
        await store.transact(say, "before")
        gate = Gate()
        writing = asyncio.ensure_future(store.transact(gate.hold))
        await gate.reached()
        async with TimeLimit(WITHIN):
            assert await store.read(appended) == 1
        gate.open()
        await writing
        assert await store.read(appended) == 2

    async def test_a_read_sees_one_moment_throughout(self, store: Store) -> None:
        first = threading.Event()
        second = threading.Event()

        def twice(tx: Tx) -> tuple[int, int]:
            before = appended(tx)
            first.set()
            assert second.wait(WITHIN)
            return before, appended(tx)

        reading = asyncio.ensure_future(store.read(twice))
        assert await asyncio.to_thread(first.wait, WITHIN)
        await store.transact(say, "meanwhile")
        second.set()
        assert await reading == (0, 0)

    async def test_a_read_that_writes_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreReadOnly):
            await store.read(say, "one")
        assert await store.read(appended) == 0
        assert await store.transact(say, "two") == "two"

    async def test_close_finishes_what_was_handed_in(self, store: Store, place: Place) -> None:
        tasks = [asyncio.ensure_future(store.transact(say, str(n))) for n in range(100)]
        await asyncio.sleep(0)  # each task has handed in its function
        await store.close()
        assert await asyncio.gather(*tasks) == [str(n) for n in range(100)]
        other = open_direct(place, CITY)
        try:
            assert other.read(appended) == 100
        finally:
            other.close()

    async def test_a_closed_store_says_so_and_may_be_closed_again(self, store: Store) -> None:
        await store.close()
        await store.close()
        with pytest.raises(RuntimeError, match="closed"):
            await store.transact(say, "late")

    async def test_a_commit_wakes_subscribers_of_its_topics_only(self, store: Store, wakes: Wakes) -> None:
        mine, other = wakes.subscribe("mine"), wakes.subscribe("other")
        mine.clear()
        other.clear()
        await store.transact(lambda tx: tx.wake("mine"))
        async with TimeLimit(WITHIN):
            await mine.wait()
        assert not other.is_set()

    async def test_a_function_that_fails_wakes_nobody(self, store: Store, wakes: Wakes) -> None:
        def fails(tx: Tx) -> None:
            tx.wake("wrong")
            raise Refused

        wrong, right = wakes.subscribe("wrong"), wakes.subscribe("right")
        wrong.clear()
        outcomes = await asyncio.gather(
            *(store.transact(fails) for _ in range(5)), store.transact(lambda tx: tx.wake("right")),
            return_exceptions=True,
        )  # fmt: skip
        async with TimeLimit(WITHIN):
            await right.wait()
        assert not wrong.is_set()
        assert outcomes[-1] is None

    async def test_a_waker_of_events_finds_what_it_was_woken_for(self, store: Store, wakes: Wakes) -> None:
        woken = wakes.subscribe("events")
        for count in range(1, 20):
            woken.clear()
            await store.transact(say, str(count))
            async with TimeLimit(WITHIN):
                await woken.wait()
            await seen(store, wakes, count)

    async def test_the_clock_of_the_database_is_near_ours(self, store: Store) -> None:
        assert abs((await store.clock_offset()).total_seconds()) < 2


class DirectStoreContract:
    """Subclasses give the fixture `place`: a migrated, empty database."""

    @pytest.fixture
    def direct(self, place: Place) -> Iterator[DirectStore]:
        opened = open_direct(place, CITY)
        yield opened
        opened.close()

    def test_a_value_comes_back_and_is_kept(self, direct: DirectStore) -> None:
        assert direct.transact(say, "one") == "one"
        assert direct.read(said) == ["one"]

    def test_an_event_is_numbered_when_transact_returns(self, direct: DirectStore) -> None:
        for count in range(1, 5):
            direct.transact(say, str(count))
            assert [event.subject for event in direct.read(lambda tx: tx.events.after(0))] == [
                str(n) for n in range(1, count + 1)
            ]

    def test_a_function_that_raises_leaves_nothing(self, direct: DirectStore) -> None:
        with pytest.raises(Refused):
            direct.transact(say_and_fail, "one")
        assert direct.read(appended) == 0
        assert direct.transact(say, "two") == "two"

    def test_a_read_that_writes_is_refused_and_spoils_nothing(self, direct: DirectStore) -> None:
        with pytest.raises(StoreReadOnly):
            direct.read(say, "one")
        assert direct.transact(say, "two") == "two"
        assert direct.read(said) == ["two"]
