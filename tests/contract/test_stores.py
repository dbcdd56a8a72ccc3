"""The store's contract on both databases, and what each of them must stand beyond it."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from lamplighter.store.engine import PostgresDirect, sqlite_connection
from lamplighter.store.engine.sqlite_connection import SqliteConnection, TransactionEnded
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreBusy, StoreFull, StoreGone, StoreUnavailable
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import PostgresUrl, SqliteUrl, open_direct, open_store
from lamplighter.testing.contracts.store import (
    AT,
    CITY,
    WITHIN,
    DirectStoreContract,
    Gate,
    StoreContract,
    appended,
    said,
    say,
    seen,
)


class TestStores(StoreContract):
    pass


class TestDirectStores(DirectStoreContract):
    pass


@pytest.fixture
async def sqlite(sqlite_place: SqliteUrl) -> AsyncIterator[Store]:
    store = open_store(sqlite_place, CITY, Wakes())
    yield store
    await store.close()


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
async def postgres_store(postgres_place: PostgresUrl, wakes: Wakes) -> AsyncIterator[Store]:
    store = open_store(postgres_place, CITY, wakes)
    yield store
    await store.close()


async def grouped(store: Store, *functions: Any) -> list[Any]:
    """The functions as members of one group: they queue up while a first one is held."""
    gate = Gate()
    first = asyncio.create_task(store.transact(gate.hold, "first"))
    await gate.reached()
    tasks = [asyncio.create_task(store.transact(function)) for function in functions]
    await asyncio.sleep(0)
    gate.open()
    async with asyncio.timeout(WITHIN):
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)


def ends_the_transaction(tx: Tx) -> None:
    tx.db.execute("INSERT INTO once VALUES (1)", {})
    tx.db.execute("INSERT OR ROLLBACK INTO once VALUES (1)", {})


def swallows_the_end(tx: Tx) -> None:
    try:
        ends_the_transaction(tx)
    except sqlite3.IntegrityError:
        return


class TestSqlite:
    async def test_a_function_that_ends_the_whole_transaction_takes_nobody_with_it(self, sqlite: Store) -> None:
        await sqlite.transact(lambda tx: tx.db.execute("CREATE TABLE once (n INTEGER UNIQUE)", {}))
        outcomes = await grouped(
            sqlite, lambda tx: say(tx, "a"), ends_the_transaction, lambda tx: say(tx, "b"), lambda tx: say(tx, "c")
        )
        assert isinstance(outcomes[1], sqlite3.IntegrityError)
        assert [outcomes[0], *outcomes[2:]] == ["a", "b", "c"]
        assert sorted(await sqlite.read(said)) == ["a", "b", "c", "first"]

    async def test_a_function_that_hides_the_end_of_its_transaction_is_found_out(self, sqlite: Store) -> None:
        await sqlite.transact(lambda tx: tx.db.execute("CREATE TABLE once (n INTEGER UNIQUE)", {}))
        outcomes = await grouped(sqlite, lambda tx: say(tx, "a"), swallows_the_end, lambda tx: say(tx, "b"))
        assert outcomes[0] == "a"
        assert isinstance(outcomes[1], TransactionEnded)
        assert outcomes[2] == "b"
        with pytest.raises(TransactionEnded):
            await sqlite.transact(swallows_the_end)
        assert sorted(await sqlite.read(said)) == ["a", "b", "first"]

    async def test_a_full_disk_is_told_to_those_it_hits_and_work_goes_on(self, sqlite: Store) -> None:
        def fill(tx: Tx) -> None:
            for _ in range(200):
                say(tx, "x" * 4000)

        pages = await sqlite.transact(_pages)
        await sqlite.transact(lambda tx: tx.db.row(f"PRAGMA max_page_count = {pages + 8}", {}))
        outcomes = await grouped(sqlite, lambda tx: say(tx, "a"), fill, lambda tx: say(tx, "b"))
        assert outcomes[0] == "a"
        assert isinstance(outcomes[1], StoreFull)
        assert outcomes[2] == "b"
        await sqlite.transact(lambda tx: tx.db.row("PRAGMA max_page_count = 1000000", {}))
        await sqlite.transact(fill)
        assert await sqlite.read(appended) == 203

    async def test_a_locked_file_is_told_and_later_works_again(
        self, sqlite_place: SqliteUrl, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
        store = open_store(sqlite_place, CITY, Wakes())
        try:
            with closing(sqlite3.connect(sqlite_place.path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StoreBusy):
                    await store.transact(say, "one")
                assert await store.read(appended) == 0
                other.execute("ROLLBACK")
            assert await store.transact(say, "two") == "two"
        finally:
            await store.close()

    async def test_a_reader_that_could_not_open_the_file_tries_again(
        self, sqlite: Store, sqlite_place: SqliteUrl
    ) -> None:
        away = sqlite_place.path.with_name("away")
        sqlite_place.path.rename(away)
        with pytest.raises(StoreGone):
            await sqlite.read(appended)
        away.rename(sqlite_place.path)
        assert await sqlite.read(appended) == 0

    def test_a_connection_is_durable_and_strict(self, sqlite_place: SqliteUrl) -> None:
        connection = SqliteConnection(sqlite_place.path, Tx)
        try:
            values = {name: connection.raw.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        finally:
            connection.close()
        assert values == PRAGMAS
        assert sqlite_place.path.stat().st_mode & 0o777 == 0o600


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def _pages(tx: Tx) -> int:
    row = tx.db.row("PRAGMA page_count", {})
    assert row is not None
    return int(row["page_count"])


class TestPostgres:
    async def test_lost_connections_are_survived(self, postgres_store: Store, postgres_url: str, wakes: Wakes) -> None:
        await asyncio.gather(*(postgres_store.transact(say, str(n)) for n in range(50)))
        await seen(postgres_store, wakes, 50)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            _end_all_others(other)
            assert await postgres_store.transact(say, "after") == "after"
            assert await postgres_store.read(appended) == 51
            await seen(postgres_store, wakes, 51)  # the numbering has found a new connection too
            for _ in range(5):
                _end_all_others(other)
                outcomes = await asyncio.gather(*(postgres_store.transact(say, "more") for _ in range(20)))
                assert outcomes == ["more"] * 20
        assert await postgres_store.read(appended) == 151

    async def test_wakeups_come_back_after_the_listener_was_cut_off(self, postgres_place: PostgresUrl) -> None:
        wakes = Wakes()
        store = open_store(postgres_place, CITY, wakes)
        direct = open_direct(postgres_place, CITY)
        try:
            with psycopg.connect(postgres_place.url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = %s AND datname = current_database()",
                    ("lamplighter listen",),
                )
            rescan = wakes.subscribe("anything")
            async with asyncio.timeout(WITHIN):
                await rescan.wait()  # listening anew, it has everything looked at once
            news = wakes.subscribe("news")
            await asyncio.to_thread(direct.transact, lambda tx: tx.wake("news"))
            async with asyncio.timeout(WITHIN):
                await news.wait()
        finally:
            direct.close()
            await store.close()

    async def test_a_member_that_waits_for_a_lock_delays_nobody_elses_answer(
        self, postgres_store: Store, postgres_url: str
    ) -> None:
        await postgres_store.transact(lambda tx: tx.db.execute("CREATE TABLE held (n INTEGER)", {}))
        await postgres_store.transact(lambda tx: tx.db.execute("INSERT INTO held VALUES (1)", {}))

        def wait_for_lock(tx: Tx) -> str:
            tx.db.execute("UPDATE held SET n = n + 1", {})
            return say(tx, "waited")

        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE held SET n = 0")
            waiting = asyncio.create_task(postgres_store.transact(wait_for_lock))
            others = [asyncio.create_task(postgres_store.transact(say, str(n))) for n in range(100)]
            async with asyncio.timeout(WITHIN):
                assert await asyncio.gather(*others) == [str(n) for n in range(100)]
            assert not waiting.done()
            other.commit()
        async with asyncio.timeout(WITHIN):
            assert await waiting == "waited"

    async def test_a_lock_that_is_never_freed_is_told(
        self, postgres_store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamplighter.store.engine.postgres_connection.LOCK_MILLIS", 50)
        await postgres_store.transact(lambda tx: tx.cities.ensure("here", AT))
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM cities FOR UPDATE")
            with pytest.raises(StoreBusy):
                await postgres_store.transact(lambda tx: tx.cities.lock())
        assert await postgres_store.transact(lambda tx: tx.cities.lock()) is not None

    async def test_a_connection_is_not_left_within_a_failed_begin(
        self, postgres_store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamplighter.store.engine.postgres_connection.CHECK_SECONDS", 0.0)
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("ALTER TABLE schema_level RENAME TO away")
            for _ in range(5):
                with pytest.raises(StoreUnavailable):
                    await postgres_store.transact(say, "no")
            other.execute("ALTER TABLE away RENAME TO schema_level")
        outcomes = await asyncio.gather(*(postgres_store.transact(say, "yes") for _ in range(20)))
        assert outcomes == ["yes"] * 20

    async def test_an_absent_server_fails_at_once_and_leaves_no_thread(self, runtime: Any) -> None:
        before = threading.active_count()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            open_store(PostgresUrl("postgresql://nobody:hush@/nowhere?host=/nonexistent", runtime), CITY, Wakes())
        assert threading.active_count() == before

    @pytest.mark.parametrize(
        "url",
        ["postgresql://user:hush@/nowhere?host=/nonexistent", "postgresql:///x?host=/nonexistent&password=hush",
         "postgresql://[broken:hush@", "postgresql://u:hush@127.0.0.1:notaport/db"],
    )  # fmt: skip
    def test_a_bad_url_is_told_without_its_password(self, url: str, runtime: Any) -> None:
        with pytest.raises(StoreUnavailable) as told:
            open_store(PostgresUrl(url, runtime), CITY, Wakes())
        assert "hush" not in told.value.message

    def test_what_was_committed_is_not_called_failed_for_a_lost_wakeup(
        self, postgres_place: PostgresUrl, postgres_url: str
    ) -> None:
        direct = open_direct(postgres_place, CITY)
        try:
            with psycopg.connect(postgres_url, autocommit=True) as other:

                def cut_off_after(tx: Tx) -> str:
                    say(tx, "kept")
                    return "kept"

                assert isinstance(direct.database, PostgresDirect)
                connection = direct.database.line.open()
                original = connection.commit

                def commit_and_be_cut_off() -> None:
                    original()
                    _end_all_others(other)

                connection.commit = commit_and_be_cut_off  # type: ignore[method-assign]  # the moment of the cut
                assert direct.transact(cut_off_after) == "kept"
                count = other.execute("SELECT count(*) FROM events").fetchone()
                assert count == (1,)
        finally:
            direct.close()


def _end_all_others(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
        "current_database() AND application_name LIKE 'lamplighter%'"
    )
