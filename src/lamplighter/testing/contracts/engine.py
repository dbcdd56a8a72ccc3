"""The contract of the store's engine: what a database does with functions of any number of cities."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from lamplighter.kit.limits import TimeLimit
from lamplighter.store.engine import Database, Db, Refused, Wakes, batched
from lamplighter.store.errors import StoreReadOnly

WITHIN = 120.0
ONE, OTHER = "cty_one", "cty_other"
MakeDatabase = Callable[[Callable[[Db, str], Any]], Database]


class Notes:
    """A scope with a single table, `notes`, made by the contract."""

    def __init__(self, db: Db, city: str) -> None:
        self.db = db
        self.city = city
        self._wakes: set[str] = set()

    def wake(self, topic: str) -> None:
        self._wakes.add(topic)

    def take_wakes(self) -> frozenset[str]:
        taken = frozenset(self._wakes)
        self._wakes.clear()
        return taken

    def add(self, text: str) -> None:
        self.db.execute("INSERT INTO scraps (city, text) VALUES (:city, :text)", {"city": self.city, "text": text})

    def texts(self) -> list[str]:
        rows = self.db.rows("SELECT text FROM scraps WHERE city = :city ORDER BY text", {"city": self.city})
        return [row["text"] for row in rows]


class NotThis(Exception):
    """Raised by the functions of tests."""


def add(notes: Notes, text: str) -> str:
    notes.add(text)
    notes.wake(text)
    return text


def add_and_fail(notes: Notes, text: str) -> None:
    add(notes, text)
    raise NotThis(text)


class Together:
    """A batched function that writes down how many calls of which city it was given at once."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

        def many(notes: Notes, texts: Sequence[str]) -> list[str | Refused]:
            self.seen.append((notes.city, len(texts)))
            return [self._answer(notes, text) for text in texts]

        def ask(text: str) -> str:
            return text

        @batched(ask, many)
        def one(notes: Notes, text: str) -> str:
            return add(notes, text)

        self.one = one

    def _answer(self, notes: Notes, text: str) -> str | Refused:
        if text.startswith("refused"):
            return Refused(NotThis(text))
        if text.startswith("broken"):
            raise NotThis(text)
        return add(notes, text)


class EngineContract:
    """Subclasses give the fixture `make_database`, for a migrated, empty database."""

    @pytest.fixture
    async def database(self, make_database: MakeDatabase) -> AsyncIterator[Database]:
        opened = make_database(Notes)
        await opened.transact(ONE, _make_table, (), {})
        yield opened
        await opened.close()

    async def test_a_function_gets_the_scope_of_its_city_and_its_arguments(self, database: Database) -> None:
        def told(notes: Notes, one: int, *, two: int) -> tuple[str, int, int]:
            return notes.city, one, two

        assert await database.transact(ONE, told, (1,), {"two": 2}) == (ONE, 1, 2)
        assert await database.read(OTHER, told, (1,), {"two": 2}) == (OTHER, 1, 2)

    async def test_what_one_function_did_in_a_group_is_kept_when_another_fails(self, database: Database) -> None:
        async with TimeLimit(WITHIN):
            outcomes = await asyncio.gather(
                *(database.transact(_turn(n), add if n % 5 else add_and_fail, (f"{n:03}",), {}) for n in range(100)),
                return_exceptions=True,
            )
        assert [isinstance(outcome, NotThis) for outcome in outcomes] == [n % 5 == 0 for n in range(100)]
        for city in (ONE, OTHER):
            texts = await database.read(city, Notes.texts, (), {})
            assert texts == [f"{n:03}" for n in range(100) if n % 5 and _turn(n) == city]

    async def test_calls_that_wait_together_are_done_together_city_by_city(self, database: Database) -> None:
        together = Together()
        texts = [f"{n:03}" for n in range(200)]
        async with _held(database), TimeLimit(WITHIN):
            calls = [
                asyncio.ensure_future(database.transact(_turn(n), together.one, (text,), {}))
                for n, text in enumerate(texts)
            ]
        async with TimeLimit(WITHIN):
            assert await asyncio.gather(*calls) == texts
        assert {city for city, _ in together.seen} == {ONE, OTHER}
        assert max(count for _, count in together.seen) > 1
        for city in (ONE, OTHER):
            kept = await database.read(city, Notes.texts, (), {})
            assert kept == [text for n, text in enumerate(texts) if _turn(n) == city]

    async def test_a_call_that_is_refused_within_a_batch_spoils_no_other(self, database: Database) -> None:
        together = Together()
        async with _held(database):
            calls = [
                asyncio.ensure_future(database.transact(ONE, together.one, (text,), {}))
                for text in ("a", "refused", "b")
            ]
        async with TimeLimit(WITHIN):
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["a", "refused", "b"]
        assert isinstance(outcomes[1], NotThis)
        assert await database.read(ONE, Notes.texts, (), {}) == ["a", "b"]

    async def test_a_batch_that_fails_as_a_whole_is_done_one_by_one(self, database: Database) -> None:
        """`broken` fails in the function for many only; alone it succeeds, and has its effect once."""
        together = Together()
        async with _held(database):
            calls = [
                asyncio.ensure_future(database.transact(ONE, together.one, (text,), {}))
                for text in ("a", "broken", "b")
            ]
        async with TimeLimit(WITHIN):
            assert await asyncio.gather(*calls) == ["a", "broken", "b"]
        assert await database.read(ONE, Notes.texts, (), {}) == ["a", "b", "broken"]

    async def test_wake_ups_go_to_those_of_the_city_and_only_for_what_is_committed(self, database: Database) -> None:
        wakes = {ONE: Wakes(), OTHER: Wakes()}
        heard = {city: [wakes[city].subscribe(topic) for topic in ("yes", "no")] for city in wakes}
        for city, one in wakes.items():
            database.wakes.add(city, one)
        with pytest.raises(NotThis):
            await database.transact(ONE, add_and_fail, ("no",), {})
        await database.transact(ONE, add, ("yes",), {})
        async with TimeLimit(WITHIN):
            await heard[ONE][0].wait()
        await database.transact(OTHER, add, ("yes",), {})
        async with TimeLimit(WITHIN):
            await heard[OTHER][0].wait()
        assert not heard[ONE][1].is_set()
        assert not heard[OTHER][1].is_set()

    async def test_one_who_is_removed_is_told_nothing_more(self, database: Database) -> None:
        wakes, left = Wakes(), Wakes()
        first, second = wakes.subscribe("yes"), left.subscribe("yes")
        database.wakes.add(ONE, wakes)
        database.wakes.add(ONE, left)
        database.wakes.remove(ONE, wakes)
        await database.transact(ONE, add, ("yes",), {})
        async with TimeLimit(WITHIN):
            await second.wait()
        assert not first.is_set()

    async def test_a_read_refuses_writes(self, database: Database) -> None:
        with pytest.raises(Exception) as refused:  # noqa: PT011  each database has its own error
            await database.read(ONE, add, ("no",), {})
        assert isinstance(refused.value, StoreReadOnly) or "read-only" in str(refused.value)
        assert await database.read(ONE, Notes.texts, (), {}) == []

    async def test_closing_finishes_what_was_handed_in(self, make_database: MakeDatabase, database: Database) -> None:
        other = make_database(Notes)
        calls = [asyncio.ensure_future(other.transact(_turn(n), add, (f"{n:03}",), {})) for n in range(100)]
        await asyncio.sleep(0)
        async with TimeLimit(WITHIN):
            await other.close()
            assert await asyncio.gather(*calls) == [f"{n:03}" for n in range(100)]
        with pytest.raises(RuntimeError, match="closed"):
            await other.transact(ONE, add, ("late",), {})
        kept = [await database.read(city, Notes.texts, (), {}) for city in (ONE, OTHER)]
        assert sum(map(len, kept)) == 100

    async def test_its_clock_is_near_ours(self, database: Database) -> None:
        assert abs((await database.clock_offset()).total_seconds()) < WITHIN


def _turn(n: int) -> str:
    return ONE if n % 2 else OTHER


def _make_table(notes: Notes) -> None:
    notes.db.execute("CREATE TABLE scraps (city TEXT NOT NULL, text TEXT NOT NULL)", {})


class _held:  # noqa: N801  used as a verb: `async with _held(database):`
    """Keeps every thread that writes busy, so that what is handed in meanwhile waits together."""

    MOST = 16

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open = threading.Event()
        self._holders: list[asyncio.Future[Any]] = []

    async def __aenter__(self) -> None:
        """Hands in functions that wait, one by one, until one of them is not begun: then no thread is left."""
        for _ in range(self.MOST):
            begun = threading.Event()
            self._holders.append(asyncio.ensure_future(self._database.transact(ONE, self._wait, (begun,), {})))
            await asyncio.sleep(0)
            if not await asyncio.to_thread(begun.wait, 0.3):
                return
        raise AssertionError("more threads write than expected")

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.sleep(0)
        self._open.set()
        async with TimeLimit(WITHIN):
            await asyncio.gather(*self._holders)

    def _wait(self, _notes: Notes, begun: threading.Event) -> None:
        begun.set()
        if not self._open.wait(WITHIN):
            raise TimeoutError("nobody let it go on")
