"""Any number of followers share one reader of the event log: each gets every match once, in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from lamplighter.domain.events import EventFilter, NewEvent
from lamplighter.kit.limits import TimeLimit
from lamplighter.services import event_tail
from lamplighter.services.event_tail import EventTail
from lamplighter.store.engine import Wakes
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, open_store
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.contracts.store import AT, CITY

WITHIN = 120.0


class Counted:
    """A store that counts what is read of it, and can be made to fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0
        self.away = False

    async def read(self, fn: Any, *args: Any) -> Any:
        self.reads += 1
        if self.away:
            raise StoreUnavailable("The database is away.")
        return await self._store.read(fn, *args)


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
async def store(place: Place, wakes: Wakes) -> AsyncIterator[Store]:
    opened = open_store(place, CITY, wakes)
    yield opened
    await opened.close()


@pytest.fixture
def counted(store: Store) -> Counted:
    return Counted(store)


@pytest.fixture
def tail(counted: Counted, wakes: Wakes, fake_clock: FakeClock) -> EventTail:
    return EventTail(counted, wakes, fake_clock)  # type: ignore[arg-type]  # it only reads


async def append(store: Store, *subjects: str, kind: str = "test.said") -> None:
    def all_of(tx: Tx) -> None:
        for n, subject in enumerate(subjects):
            tx.events.append(NewEvent(kind, AT + timedelta(minutes=n), "tester", subject=subject))

    await store.transact(all_of)


class Reader:
    """A follower that keeps what it gets; `until` waits for that many."""

    def __init__(self, tail: EventTail, wanted: EventFilter) -> None:
        self.got: list[str | None] = []
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._follow(tail, wanted))

    async def _follow(self, tail: EventTail, wanted: EventFilter) -> None:
        async with aclosing(tail.follow(wanted)) as stream:
            async for event in stream:
                self.got.append(event.subject)
                self._more.set()

    async def until(self, count: int) -> list[str | None]:
        async with TimeLimit(WITHIN):
            while len(self.got) < count:
                self._more.clear()
                await self._more.wait()
        return self.got

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


def words(start: int, end: int) -> list[str]:
    return [str(n) for n in range(start, end)]


async def test_many_followers_get_everything_once_in_order_and_the_log_is_read_once_for_all(
    store: Store, counted: Counted, tail: EventTail
) -> None:
    await append(store, *words(0, 20))
    readers = [Reader(tail, EventFilter()) for _ in range(40)]
    for reader in readers:
        await reader.until(20)
    before = counted.reads
    for n in range(20, 30):
        await append(store, str(n))
        await readers[0].until(n + 1)
    for reader in readers:
        assert await reader.until(30) == words(0, 30)
    # A wake-up may come twice on PostgreSQL, from here and from the server; it never costs one read per follower.
    assert counted.reads - before <= 10 * 3
    for reader in readers:
        await reader.end()


async def test_one_who_comes_later_gets_what_was_and_what_comes(store: Store, tail: EventTail) -> None:
    early = Reader(tail, EventFilter())
    await append(store, *words(0, event_tail.PAGE + 30))
    await early.until(event_tail.PAGE + 30)
    late = Reader(tail, EventFilter())
    await append(store, *words(event_tail.PAGE + 30, event_tail.PAGE + 60))
    assert await late.until(event_tail.PAGE + 60) == words(0, event_tail.PAGE + 60)
    assert await early.until(event_tail.PAGE + 60) == words(0, event_tail.PAGE + 60)
    await early.end()
    await late.end()


async def test_each_follower_has_its_own_filter(store: Store, tail: EventTail) -> None:
    wanted = {
        "type": EventFilter(type="test.this"),
        "family": EventFilter(type="other.*"),
        "subject": EventFilter(subject="x"),
        "since": EventFilter(since=AT + timedelta(minutes=1)),
        "actor": EventFilter(actor="nobody"),
    }
    readers = {name: Reader(tail, one) for name, one in wanted.items()}
    everything = Reader(tail, EventFilter())
    await append(store, "a", "x", kind="test.this")
    await append(store, "b", kind="other.one")
    await append(store, "x", kind="test.that")
    await everything.until(4)
    assert await readers["type"].until(2) == ["a", "x"]
    assert await readers["family"].until(1) == ["b"]
    assert await readers["subject"].until(2) == ["x", "x"]
    assert await readers["since"].until(1) == ["x"]
    assert readers["actor"].got == []
    for reader in (everything, *readers.values()):
        await reader.end()


async def test_a_follower_that_is_slow_loses_nothing_and_holds_up_nobody(
    store: Store, tail: EventTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_tail, "MOST_WAITING", 5)
    quick = Reader(tail, EventFilter())
    async with aclosing(tail.follow(EventFilter())) as slow:
        await append(store, *words(0, 3))
        async with TimeLimit(WITHIN):
            assert (await anext(slow)).subject == "0"
            for n in range(3, 60):
                await append(store, str(n))
            await quick.until(60)
            assert [(await anext(slow)).subject for _ in range(59)] == words(1, 60)
            await append(store, "60")
            assert (await anext(slow)).subject == "60"
    await quick.end()


async def test_nothing_is_read_while_nobody_follows(
    store: Store, counted: Counted, tail: EventTail, wakes: Wakes
) -> None:
    reader = Reader(tail, EventFilter())
    await append(store, "a")
    await reader.until(1)
    await reader.end()
    before = counted.reads
    heard = wakes.subscribe("events")
    await append(store, "b")
    async with TimeLimit(WITHIN):
        await heard.wait()
    assert counted.reads == before
    again = Reader(tail, EventFilter(after=0))
    assert await again.until(2) == ["a", "b"]
    await again.end()


async def test_an_error_of_the_log_reaches_every_follower_and_the_next_begins_anew(
    store: Store, counted: Counted, tail: EventTail
) -> None:
    readers = [Reader(tail, EventFilter()) for _ in range(3)]
    await append(store, "a")
    for reader in readers:
        await reader.until(1)
    counted.away = True
    await append(store, "b")
    async with TimeLimit(WITHIN):
        outcomes = await asyncio.gather(*(reader._task for reader in readers), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    counted.away = False
    again = Reader(tail, EventFilter())
    assert await again.until(2) == ["a", "b"]
    await again.end()
