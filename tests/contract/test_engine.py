"""The engine's contract on both databases, and what the notifier does on PostgreSQL."""

import asyncio
from typing import Any

import psycopg
import pytest

from lamplighter.kit.limits import TimeLimit
from lamplighter.store.engine import Database, PostgresDatabase, SqliteDatabase, Wakes, Write
from lamplighter.store.engine.deferred import NotAsExpected
from lamplighter.store.engine.postgres_connection import PostgresConnection
from lamplighter.store.url import Place, PostgresUrl, SqliteUrl
from lamplighter.testing.contracts.engine import ONE, OTHER, WITHIN, EngineContract, MakeDatabase, Notes

ADD = Write("INSERT INTO scraps (city, text) SELECT :city, :text {each}")
MOVE = Write("UPDATE scraps SET text = :text {each} WHERE city = :city AND text = :before", key="before")
MAYBE = Write("UPDATE scraps SET text = :text {each} WHERE city = :city AND text = :before", key="before", must=False)


@pytest.fixture
def make_database(place: Place) -> MakeDatabase:
    match place:
        case SqliteUrl(path):
            return lambda make: SqliteDatabase(path, make)
        case PostgresUrl(url):
            return lambda make: PostgresDatabase(url, make)


class TestEngine(EngineContract):
    pass


@pytest.fixture
def connection(postgres_url: str) -> Any:
    opened = PostgresConnection(postgres_url, Notes)
    opened.raw.execute("CREATE TABLE scraps (city TEXT NOT NULL, text TEXT NOT NULL)")
    yield opened
    opened.close()


def _all(connection: PostgresConnection) -> list[tuple[str, str]]:
    rows = connection.raw.execute("SELECT city, text FROM scraps ORDER BY city, text").fetchall()
    return [(row["city"], row["text"]) for row in rows]


class TestHeldBackWrites:
    """On PostgreSQL, where a statement costs a round trip."""

    def test_they_are_sent_before_anything_is_read_and_each_goes_to_its_city(
        self, connection: PostgresConnection
    ) -> None:
        def work(notes: Notes) -> list[str]:
            for n in range(5):
                notes.db.write(ADD, ONE, {"text": f"{n}"})
                notes.db.write(ADD, OTHER, {"text": f"{n} there"})
            return notes.texts()

        texts, _ = connection.alone(ONE, work)
        assert texts == [f"{n}" for n in range(5)]
        assert _all(connection) == [(ONE, f"{n}") for n in range(5)] + [(OTHER, f"{n} there") for n in range(5)]

    def test_two_writes_of_one_row_are_both_done_in_their_order(self, connection: PostgresConnection) -> None:
        def work(notes: Notes) -> None:
            notes.db.write(ADD, ONE, {"text": "a"})
            notes.db.write(MAYBE, ONE, {"before": "a", "text": "b"})
            notes.db.write(MAYBE, ONE, {"before": "a", "text": "never"})
            notes.db.write(MAYBE, ONE, {"before": "b", "text": "c"})

        connection.alone(ONE, work)
        assert _all(connection) == [(ONE, "c")]

    def test_one_that_misses_its_row_has_the_function_run_again_with_every_write_at_once(
        self, connection: PostgresConnection
    ) -> None:
        answers: list[bool] = []

        def work(notes: Notes) -> None:
            answers.append(notes.db.write(MOVE, ONE, {"before": "absent", "text": "x"}))
            notes.db.write(ADD, ONE, {"text": "kept"})

        connection.alone(ONE, work)
        assert answers == [True, False]  # assumed, then known
        assert _all(connection) == [(ONE, "kept")]

    def test_one_that_misses_its_row_undoes_the_whole_group(self, connection: PostgresConnection) -> None:
        connection.begin(in_group=True)
        notes = connection.scopes.of(ONE)
        notes.db.write(ADD, ONE, {"text": "a"})
        notes.db.write(MOVE, OTHER, {"before": "absent", "text": "x"})
        with pytest.raises(NotAsExpected):
            connection.commit()
        connection.rollback()
        assert _all(connection) == []

    def test_they_are_dropped_with_their_transaction(self, connection: PostgresConnection) -> None:
        connection.begin()
        connection.scopes.of(ONE).db.write(ADD, ONE, {"text": "a"})
        connection.rollback()
        connection.begin()
        connection.commit()
        assert _all(connection) == []


class TestGroupsOnPostgres:
    async def test_a_function_that_waits_for_a_lock_is_taken_out_of_its_group(
        self, postgres_url: str, postgres_database: Database
    ) -> None:
        def lock(notes: Notes) -> str:
            notes.db.execute("UPDATE scraps SET text = 'mine' WHERE city = :city", {"city": notes.city})
            return "locked"

        await postgres_database.transact(ONE, Notes.add, ("held",), {})
        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE scraps SET text = 'theirs'")
            waits = asyncio.ensure_future(postgres_database.transact(ONE, lock, (), {}))
            async with TimeLimit(WITHIN):
                await asyncio.gather(*(postgres_database.transact(OTHER, Notes.add, (str(n),), {}) for n in range(50)))
            assert not waits.done()
            other.commit()
        async with TimeLimit(WITHIN):
            assert await waits == "locked"


class TestNotifier:
    async def test_a_wake_up_reaches_another_process_of_the_same_city_only(self, postgres_url: str) -> None:
        here, there = PostgresDatabase(postgres_url, Notes), PostgresDatabase(postgres_url, Notes)
        try:
            mine, foreign = Wakes(), Wakes()
            there.wakes.add(ONE, mine)
            there.wakes.add(OTHER, foreign)
            heard, never = mine.subscribe("news"), foreign.subscribe("news")
            never.clear()
            await here.transact(ONE, lambda notes: notes.wake("news"), (), {})
            async with TimeLimit(WITHIN):
                await heard.wait()
            after = foreign.subscribe("later")
            await here.transact(OTHER, lambda notes: notes.wake("later"), (), {})
            async with TimeLimit(WITHIN):
                await after.wait()  # sent after the other: that one has arrived, if it was to
            assert not never.is_set()
        finally:
            await here.close()
            await there.close()

    async def test_processes_whose_connections_have_one_number_wake_each_other(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after a restart of the server, which counts anew, or behind a pooler."""
        monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda _self: 7))
        here, there = PostgresDatabase(postgres_url, Notes), PostgresDatabase(postgres_url, Notes)
        try:
            wakes = Wakes()
            there.wakes.add(ONE, wakes)
            for database in (there, here):
                heard = wakes.subscribe("news")
                await database.transact(ONE, lambda notes: notes.wake("news"), (), {})
                async with TimeLimit(WITHIN):
                    await heard.wait()
        finally:
            await here.close()
            await there.close()

    async def test_events_that_a_dead_process_left_without_numbers_are_numbered_and_told_to_their_city(
        self, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamplighter.store.engine.notifier.POLL_SECONDS", 0.05)
        database = PostgresDatabase(postgres_url, Notes)
        try:
            wakes, foreign = Wakes(), Wakes()
            database.wakes.add(ONE, wakes)
            database.wakes.add(OTHER, foreign)
            heard, never = wakes.subscribe("events"), foreign.subscribe("events")
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("INSERT INTO events (city_id, type, at, actor) VALUES (%s, 'x.y', 1, 'a')", (ONE,))
                async with TimeLimit(WITHIN):
                    await heard.wait()
                left = other.execute("SELECT count(*) FROM events WHERE seq IS NULL").fetchone()
            assert left == (0,)
            assert not never.is_set()
        finally:
            await database.close()


@pytest.fixture
async def postgres_database(postgres_url: str) -> Any:
    opened = PostgresDatabase(postgres_url, Notes)
    await opened.transact(
        ONE, lambda notes: notes.db.execute("CREATE TABLE scraps (city TEXT NOT NULL, text TEXT NOT NULL)", {}), (), {}
    )
    yield opened
    await opened.close()


def test_the_door_names_what_there_is() -> None:
    from lamplighter.store import engine

    for name in engine._MODULE_OF:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="no NoSuchName"):
        _ = engine.NoSuchName  # type: ignore[attr-defined]  # that is the point
