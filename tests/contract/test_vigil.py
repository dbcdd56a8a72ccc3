"""The ring of processes on PostgreSQL: a death is heard of at once, by whoever watches."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamplighter.daemon.cluster.peer_watch import PeerWatch
from lamplighter.kit.clock import SystemClock
from lamplighter.services import owners
from lamplighter.services.context import acting
from lamplighter.store.engine.death_watch import PostgresDeathWatch
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import ProofLost
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store
from lamplighter.store.url import PostgresUrl, SqliteUrl, open_death_watch, open_proofs, open_store
from lamplighter.testing.contracts.store import AT, CITY
from lamplighter.testing.processes import Child, Children, children

CONTEXT = acting("tester", AT)
HOLDER = Path(__file__).with_name("proof_child.py")


@pytest.fixture
async def store(postgres_place: PostgresUrl) -> AsyncIterator[Store]:
    opened = open_store(postgres_place, CITY, Wakes())
    await opened.transact(lambda tx: tx.cities.ensure("here", AT))
    yield opened
    await opened.close()


async def peer_watch(place: PostgresUrl, store: Store, name: str) -> PeerWatch:
    proofs = open_proofs(place)
    await owners.join(store, proofs, Owner(name, "worker", "host", 1, AT), ctx=CONTEXT)
    return PeerWatch(store, SystemClock(), proofs, PostgresDeathWatch(place.url), name, "worker")


def other(started: Children, place: PostgresUrl, name: str) -> Child:
    """Another process that holds a proof of life."""
    child = started.script(HOLDER, place.url, str(place.runtime), name)
    assert child.line() == "held"
    return child


async def register(store: Store, name: str) -> None:
    await store.transact(owners.register, Owner(name, "worker", "host", 2, AT))


def test_files_need_no_vigil(sqlite_place: SqliteUrl) -> None:
    assert open_death_watch(sqlite_place) is None


async def test_a_death_ends_the_wait_and_the_dead_are_buried(postgres_place: PostgresUrl, store: Store) -> None:
    me = await peer_watch(postgres_place, store, "own_1")
    with children() as started:
        child = other(started, postgres_place, "own_2")
        await register(store, "own_2")
        assert await me.tick() == []  # it lives
        watching = asyncio.create_task(me.tick())
        await asyncio.to_thread(child.kill)
        buried = await watching or await me.tick()
    assert buried == ["own_2"]
    assert [one.id for one in await store.read(lambda tx: tx.owners.all())] == ["own_1"]
    me.close()
    me.proofs.release("own_1")


async def test_one_that_nobody_watches_is_noticed_all_the_same(postgres_place: PostgresUrl, store: Store) -> None:
    """In the ring own_2 watches own_3; but own_2 has only just begun, and watches nobody yet."""
    me = await peer_watch(postgres_place, store, "own_1")
    with children() as started:
        other(started, postgres_place, "own_2")
        await register(store, "own_2")
        await register(store, "own_3")
        assert await me.tick() == ["own_3"]
    me.close()
    me.proofs.release("own_1")


async def test_who_joins_cuts_the_wait_short(postgres_place: PostgresUrl, store: Store) -> None:
    me = await peer_watch(postgres_place, store, "own_1")
    with children() as started:
        other(started, postgres_place, "own_3")
        await register(store, "own_3")
        watching = asyncio.create_task(me.tick())
        me.wake.set()
        assert await watching == []
    me.close()
    me.proofs.release("own_1")


async def test_alone_it_rests_and_still_lays_ghosts(postgres_place: PostgresUrl, store: Store) -> None:
    me = await peer_watch(postgres_place, store, "own_1")
    assert await me.tick() == []
    assert me.until_next().total_seconds() > 0
    me.close()
    me.proofs.release("own_1")


async def test_a_watchman_taken_for_dead_says_so(postgres_place: PostgresUrl, store: Store) -> None:
    me = await peer_watch(postgres_place, store, "own_1")
    me.proofs.release("own_1")
    with pytest.raises(ProofLost):
        await me.tick()
    me.close()


def test_a_wait_that_is_cut_short_at_any_moment_keeps_nobody_alive(postgres_place: PostgresUrl) -> None:
    """The order may come while it waits, as the lock falls to it, or late, in the middle of its next wait."""
    death_watch, proofs = PostgresDeathWatch(postgres_place.url), open_proofs(postgres_place)
    over = threading.Event()

    def cut_all_the_time() -> None:
        while not over.is_set():
            death_watch.cut_short()

    cutting = threading.Thread(target=cut_all_the_time)
    cutting.start()
    try:
        answers = set()
        for _ in range(300):
            answers.add(death_watch.ended("own_dead", within=0.05))
            assert proofs.dead("own_dead")
        assert True in answers
    finally:
        over.set()
        cutting.join()
        death_watch.close()
        proofs.close()


def test_two_who_look_at_the_same_moment_both_see_that_it_is_dead(postgres_place: PostgresUrl) -> None:
    looking = [open_proofs(postgres_place) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda proofs: [proofs.dead("own_dead") for _ in range(100)], looking)
        assert all(all(each) for each in found)
    for proofs in looking:
        proofs.close()
