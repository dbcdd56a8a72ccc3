"""A PostgreSQL server that goes and comes: what is told, what is repeated, and what never is."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamplighter.services import owners
from lamplighter.services.context import acting
from lamplighter.store.engine.death_watch import PostgresDeathWatch
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import CommitUnknown, PooledByTransaction, ServerReadOnly, StoreUnavailable
from lamplighter.store.owners import Owner
from lamplighter.store.patience import Patience, PatientStore
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import PostgresUrl, migrate, open_direct, open_proofs, open_store
from lamplighter.testing.contracts.store import AT, CITY
from lamplighter.testing.cutting_proxy import Cut, CuttingProxy, cutting_proxy, stopping_server
from lamplighter.testing.pooler import transaction_pooler
from lamplighter.testing.postgres import Cluster

NO_SUCH_SERVER = "postgresql:///nothing?host=/nonexistent"


@pytest.fixture
def proxy(postgres: Cluster) -> Iterator[CuttingProxy]:
    with (
        tempfile.TemporaryDirectory(prefix="lamp-cut-", dir="/tmp") as home,  # a socket's path must be short
        cutting_proxy(Path(home), postgres.home) as found,
    ):
        yield found


@pytest.fixture
def through_proxy(postgres: Cluster, postgres_url: str, proxy: CuttingProxy) -> str:
    return postgres_url.replace(str(postgres.home), str(proxy.home))


def opened(url: str) -> Store:
    return open_store(PostgresUrl(url, Path()), CITY, Wakes())


@pytest.fixture
async def store(through_proxy: str) -> AsyncIterator[Store]:
    made = opened(through_proxy)
    yield made
    await made.close()


class Counted:
    """Appends one event each time it is called, and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tx: Tx, subject: str) -> str:
        self.calls += 1
        tx.events.append(acting("tester", AT).event("test.said", subject=subject))
        return subject


def written(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as other:
        row = other.execute("SELECT count(*) FROM events").fetchone()
        assert row is not None
        return int(row[0])


def patient(url: str, patience: Patience = Patience(30.0, lambda _error: None)) -> PatientStore:  # noqa: B008  frozen
    return PatientStore(lambda: open_direct(PostgresUrl(url, Path()), CITY), patience)


@pytest.mark.parametrize(("cut", "rows"), [(Cut.ANSWER, 1), (Cut.REQUEST, 0)])
async def test_a_commit_without_an_answer_is_told_and_never_repeated(
    store: Store, proxy: CuttingProxy, postgres_url: str, cut: Cut, rows: int
) -> None:
    work = Counted()
    proxy.cut_next(cut)
    with pytest.raises(CommitUnknown):
        await store.transact(work, "once")
    assert work.calls == 1
    assert await store.transact(Counted(), "after") == "after"
    assert written(postgres_url) == rows + 1


@pytest.mark.parametrize(("cut", "rows"), [(Cut.ANSWER, 2), (Cut.REQUEST, 0)])
async def test_a_groups_commit_without_an_answer_is_told_to_each_and_never_repeated(
    store: Store, proxy: CuttingProxy, postgres_url: str, cut: Cut, rows: int
) -> None:
    first, second = Counted(), Counted()
    proxy.cut_next(cut)
    outcomes = await _together(store, first, second)
    assert [type(outcome) for outcome in outcomes] == [CommitUnknown, CommitUnknown]
    assert (first.calls, second.calls) == (1, 1)
    assert written(postgres_url) == rows


async def _together(store: Store, *works: Callable[[Tx, str], str]) -> list[Any]:
    """Handed in at once, so that one thread commits them together."""
    tasks = [asyncio.ensure_future(store.transact(work, "group")) for work in works]
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("cut", "calls"), [(Cut.ANSWER, 1), (Cut.REQUEST, 2)])
def test_a_patient_command_asks_what_became_of_its_commit_and_has_its_effect_once(
    through_proxy: str, proxy: CuttingProxy, postgres_url: str, cut: Cut, calls: int
) -> None:
    direct = patient(through_proxy)
    try:
        work = Counted()
        proxy.cut_next(cut)
        assert direct.transact(work, "once") == "once"
        assert proxy.cuts == 1
        assert work.calls == calls
        assert written(postgres_url) == 1
    finally:
        direct.close()


async def test_a_connection_cut_within_a_group_is_no_bug(store: Store, postgres_url: str) -> None:
    """Its functions lose their connection in turn, also where each has a savepoint."""

    def cut_off(tx: Tx, subject: str) -> str:
        tx.db.execute("SELECT pg_terminate_backend(pg_backend_pid())", {})
        return subject

    outcomes = await _together(store, cut_off, cut_off, cut_off)
    assert [isinstance(outcome, StoreUnavailable) for outcome in outcomes] == [True] * 3
    assert await store.transact(Counted(), "after") == "after"
    assert written(postgres_url) == 1


async def test_a_read_only_period_is_told_as_such_and_passes(postgres_url: str) -> None:
    store = opened(postgres_url)
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    try:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
            _end_all_others(other)
            outcomes = await _together(store, Counted(), Counted(), Counted())
            assert [type(outcome) for outcome in outcomes] == [ServerReadOnly] * 3
            assert all(outcome.passing for outcome in outcomes)
            other.execute("SET default_transaction_read_only = off")
            other.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'.encode())
            _end_all_others(other)
        assert await store.transact(Counted(), "after") == "after"
    finally:
        await store.close()


class TestConnectionsThatBreakWhileTheyAreMade:
    """A server that stops lets a connection in and cuts it before its first statement."""

    @pytest.fixture
    def cutting_url(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="lamp-cut-", dir="/tmp") as home, stopping_server(Path(home)):
            yield f"postgresql:///any?host={home}&user=lamp"

    def test_a_proof_of_life(self, cutting_url: str, runtime: Path) -> None:
        with pytest.raises(StoreUnavailable):
            open_proofs(PostgresUrl(cutting_url, runtime))

    def test_a_store(self, cutting_url: str) -> None:
        with pytest.raises(StoreUnavailable):
            opened(cutting_url)

    def test_a_migration(self, cutting_url: str, runtime: Path) -> None:
        with pytest.raises(StoreUnavailable):
            migrate(PostgresUrl(cutting_url, runtime))


def test_a_pooler_by_transaction_is_refused_with_a_sentence(
    postgres: Cluster, postgres_url: str, runtime: Path
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="lamp-pool-", dir="/tmp") as home,
        transaction_pooler(Path(home), postgres.home),
    ):
        place = PostgresUrl(postgres_url.replace(str(postgres.home), home), runtime)
        with pytest.raises(PooledByTransaction, match="gives each transaction another session"):
            open_proofs(place)


def test_a_vigil_whose_connection_was_cut_watches_on(postgres_place: PostgresUrl) -> None:
    proofs = open_proofs(postgres_place)
    proofs.hold("own_1")
    death_watch = PostgresDeathWatch(postgres_place.url)
    try:
        with psycopg.connect(postgres_place.url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
                "WHERE application_name = 'lamplighter vigil' AND datname = current_database()"
            )
        with pytest.raises(StoreUnavailable):
            death_watch.ended("own_1", within=0.05)
        assert not death_watch.ended("own_1", within=0.05)
        proofs.release("own_1")
        assert death_watch.ended("own_1", within=180)
    finally:
        death_watch.close()


def test_a_direct_store_whose_connection_was_cut_works_on(postgres_url: str) -> None:
    direct = patient(postgres_url)
    try:
        direct.transact(Counted(), "before")
        with psycopg.connect(postgres_url, autocommit=True) as other:
            _end_all_others(other)
        assert direct.read(lambda tx: tx.cities.find()) is None
        with psycopg.connect(postgres_url, autocommit=True) as other:
            _end_all_others(other)
        direct.transact(Counted(), "after")
    finally:
        direct.close()
    assert written(postgres_url) == 2


def test_patience_ends_and_says_once_that_it_waits() -> None:
    now, told = [0.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    patience = Patience(60.0, told.append, monotonic=lambda: now[0], sleep=sleep)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        PatientStore(lambda: open_direct(PostgresUrl(NO_SUCH_SERVER, Path()), CITY), patience).read(
            lambda tx: tx.cities.find()
        )
    assert now == [60.0]
    assert len(told) == 1


async def test_a_proof_lost_with_its_server_is_told_as_lost(postgres_place: PostgresUrl) -> None:
    store = opened(postgres_place.url)
    proofs = open_proofs(postgres_place)
    try:
        await store.transact(lambda tx: tx.cities.ensure("here", AT))
        await owners.join(store, proofs, Owner("own_1", "worker", "host", 1, AT), ctx=acting("tester", AT))
        with psycopg.connect(postgres_place.url, autocommit=True) as other:
            _end_all_others(other)
        with pytest.raises(StoreUnavailable):
            proofs.dead("own_2")
        with pytest.raises(StoreUnavailable):
            proofs.living(["own_2"])
    finally:
        await store.close()


def _end_all_others(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
        "current_database() AND application_name LIKE 'lamplighter%'"
    )
