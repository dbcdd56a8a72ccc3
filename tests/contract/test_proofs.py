"""Proof of life on both kinds: held while its process lives, dropped however it ends, lost only with a word."""

import asyncio
import fcntl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from lamplighter.domain.events import EventFilter
from lamplighter.services import owners
from lamplighter.services.context import acting
from lamplighter.store.engine.liveness import FileProofs
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import ProofLost, StoreUnavailable
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store
from lamplighter.store.url import Place, PostgresUrl, open_proofs, open_store
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.contracts.store import AT, CITY, seen
from lamplighter.testing.processes import children

CONTEXT = acting("tester", AT)
HOLDER = Path(__file__).with_name("proof_child.py")


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
async def store(place: Place, wakes: Wakes) -> AsyncIterator[Store]:
    opened = open_store(place, CITY, wakes)
    await opened.transact(lambda tx: tx.cities.ensure("here", AT))
    yield opened
    await opened.close()


def url_of(place: Place) -> str:
    return place.url if isinstance(place, PostgresUrl) else ""


def test_a_proof_is_held_until_it_is_released(place: Place) -> None:
    mine, other = open_proofs(place), open_proofs(place)
    mine.hold("own_1")
    mine.check("own_1")
    assert not other.dead("own_1")
    assert not mine.dead("own_1")
    assert other.dead("own_2")
    assert other.living(["own_1", "own_2"]) == mine.living(["own_1", "own_2"]) == {"own_1"}
    mine.release("own_1")
    assert other.dead("own_1")
    other.release("own_2")


def test_a_proof_never_held_or_released_is_lost(place: Place) -> None:
    proofs = open_proofs(place)
    proofs.hold("own_1")
    with pytest.raises(ProofLost):
        proofs.check("own_2")
    proofs.release("own_1")
    with pytest.raises(ProofLost):
        proofs.check("own_1")


def test_a_killed_process_is_known_to_be_dead_and_a_living_one_to_live(place: Place) -> None:
    proofs = open_proofs(place)
    with children() as processes:
        holder = processes.start(sys.executable, str(HOLDER), url_of(place), str(place.runtime), "own_far")
        assert holder.line() == "held"
        assert not proofs.dead("own_far")
        holder.kill()
        if isinstance(place, PostgresUrl):  # the server drops the lock when it notices, a moment later
            with psycopg.connect(place.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
                    "WHERE application_name = 'lamplighter proof of life' AND datname = current_database() AND pid IN "
                    "(SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
                )
        assert proofs.dead("own_far")
    proofs.release("own_me")


def test_a_proof_whose_connection_was_cut_is_lost(postgres_place: PostgresUrl) -> None:
    proofs = open_proofs(postgres_place)
    proofs.hold("own_1")
    with psycopg.connect(postgres_place.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE application_name = 'lamplighter proof of life' AND datname = current_database()"
        )
    with pytest.raises(ProofLost):
        proofs.check("own_1")
    with pytest.raises(StoreUnavailable):
        proofs.dead("own_2")
    proofs.release("own_1")


async def test_whoever_enlists_buries_the_dead_and_takes_their_control(
    place: Place, store: Store, wakes: Wakes
) -> None:
    proofs = await asyncio.to_thread(open_proofs, place)
    dead = Owner("own_dead", "controller", "host", 1, AT)
    await store.transact(owners.register, dead)
    await store.transact(lambda tx: tx.cities.take_control(dead.id, expected=0, now=AT))
    me = Owner("own_me", "controller", "host", 2, AT)
    assert await owners.join(store, proofs, me, ctx=CONTEXT) == [dead]
    await owners.take_control(store, proofs, me, ctx=CONTEXT)
    city = await store.read(lambda tx: tx.cities.find())
    assert city is not None
    assert (city.controller, city.controller_since) == (me.id, AT)
    lost = await seen(store, wakes, 1)
    assert [(event.type, event.subject, event.payload["pid"]) for event in lost] == [("owner.lost", dead.id, 1)]
    await owners.leave(store, proofs, me, clock=FakeClock())
    after = await store.read(lambda tx: (tx.cities.find(), tx.owners.others("")))
    assert after[0] is not None
    assert (after[0].controller, after[1]) == (None, [])
    assert await store.read(lambda tx: tx.events.latest(EventFilter(type="owner.lost"), limit=9)) == lost


async def test_a_controller_whose_proof_goes_a_moment_after_its_process_is_followed(place: Place, store: Store) -> None:
    """A child that it was about to start holds the files of a killed process a moment longer."""
    first, second = [await asyncio.to_thread(open_proofs, place) for _ in range(2)]
    killed, heir = (Owner(f"own_{n}", "controller", "host", n, AT) for n in (1, 2))
    await owners.join(store, first, killed, ctx=CONTEXT)
    await owners.take_control(store, first, killed, ctx=CONTEXT)
    assert await owners.join(store, second, heir, ctx=CONTEXT) == []
    asyncio.get_running_loop().call_later(0.2, first.release, killed.id)
    await owners.take_control(store, second, heir, ctx=CONTEXT)
    city = await store.read(lambda tx: tx.cities.find())
    assert city is not None
    assert city.controller == heir.id
    await owners.leave(store, second, heir, clock=FakeClock())


def test_a_process_that_looks_is_not_taken_for_a_living_one(tmp_path: Path) -> None:
    holder = FileProofs(tmp_path)
    holder.hold("own_1")
    with (tmp_path / "own_1").open("rb") as looking:
        holder.release("own_1")
        (tmp_path / "own_1").touch()
        fcntl.flock(looking, fcntl.LOCK_SH)
        with (tmp_path / "own_1").open("rb") as another:
            fcntl.flock(another, fcntl.LOCK_SH)
            assert FileProofs(tmp_path).dead("own_1")


async def test_a_living_controller_is_not_displaced(place: Place, store: Store) -> None:
    first, second = [await asyncio.to_thread(open_proofs, place) for _ in range(2)]
    ruler, rival = (Owner(f"own_{n}", "controller", "host", n, AT) for n in (1, 2))
    await owners.join(store, first, ruler, ctx=CONTEXT)
    await owners.take_control(store, first, ruler, ctx=CONTEXT)
    assert await owners.join(store, second, rival, ctx=CONTEXT) == []
    with pytest.raises(owners.ControlledElsewhere, match="process 1 on host"):
        await owners.take_control(store, second, rival, ctx=CONTEXT)
    await owners.leave(store, second, rival, clock=FakeClock())
    await owners.leave(store, first, ruler, clock=FakeClock())
