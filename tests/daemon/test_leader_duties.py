"""What one process does for all: for its city where no controller does it, and for the node that several share."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from loops_city import Loops, open_loops

from lamplighter.daemon.cluster.leader_duties import EVERY_MINUTE, FORGOTTEN_AFTER, LeaderDuties
from lamplighter.daemon.ticks import Phase
from lamplighter.domain.cluster.nodes import Node, NodeState
from lamplighter.domain.sessions.logins import Login, LoginKey, LoginState
from lamplighter.services import logins
from lamplighter.services.runs import review
from lamplighter.store.engine.db import stamp
from lamplighter.store.owners import Owner
from lamplighter.store.url import Place
from lamplighter.testing.clock import FakeClock

SECOND = timedelta(seconds=1)


@pytest.fixture
async def loops(sqlite_place: Place, tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Loops]:
    """Nobody is registered but who a test registers."""
    async with open_loops(sqlite_place, tmp_path, fake_clock, owners=()) as found:
        yield found


def duties(loops: Loops, owner: str, node: str) -> LeaderDuties:
    return LeaderDuties(loops.store, loops.clock, loops.ids, review.Worker(owner, node))


async def register(loops: Loops, owner: str, kind: str, node: str) -> None:
    row = Owner(owner, kind, "box", 1, loops.clock.now(), node)
    await loops.store.transact(lambda tx: tx.owners.register(row))


async def test_of_all_processes_one_does_what_is_done_for_the_city_and_one_for_each_node(loops: Loops) -> None:
    at = {"own_b": "here", "own_c": "here", "own_d": "there"}
    for owner, node in at.items():
        await register(loops, owner, "worker", node)
    await register(loops, "own_a", "command", "here")

    async def done() -> list[tuple[str, str]]:
        did: list[tuple[str, str]] = []

        async def by(owner: str, what: str) -> None:
            did.append((owner, what))

        for owner, node in [*at.items(), ("own_a", "here")]:
            own = duties(loops, owner, node)
            for what, guard in (("city", own.for_city), ("node", own.for_node)):
                phase = Phase(what, lambda owner=owner, what=what: by(owner, what), ("topic",), SECOND)  # type: ignore[misc]
                guarded = guard(phase)
                assert (guarded.name, guarded.topics, guarded.at_most_every) == (what, ("topic",), SECOND)
                await guarded.tick()
        return did

    assert await done() == [("own_b", "city"), ("own_b", "node"), ("own_d", "node")]
    await register(loops, "own_e", "controller", "there")
    at["own_e"] = "there"
    assert await done() == [("own_b", "node"), ("own_e", "city"), ("own_e", "node")]


async def test_runs_of_a_node_end_once_it_has_been_gone_for_as_long_as_the_city_says(
    loops: Loops, fake_clock: FakeClock
) -> None:
    await loops.add("sweep", exec="true")
    run = await loops.fire("sweep")
    lost_after = loops.city.workers.lost_after
    values = {"node": "gone", "at": stamp(fake_clock.now()), "id": run}
    sql = "UPDATE runs SET state = 'running', node = :node, lease_owner = NULL, orphaned_at = :at WHERE id = :id"
    await loops.store.transact(lambda tx: tx.db.execute(sql, values))
    await loops.store.transact(lambda tx: tx.db.execute("DELETE FROM outbox", {}))
    lost, old = duties(loops, "own_1", "here").phases(loops.city)
    assert (lost.at_most_every, old.at_most_every) == (timedelta(0), EVERY_MINUTE)
    fake_clock.advance(lost_after - SECOND)
    assert await lost.tick() == []
    fake_clock.advance(SECOND)
    assert await lost.tick() == [run]
    assert await lost.tick() == []
    assert ((await loops.get(run)).state, (await loops.get(run)).reason) == ("failed", "node_lost")


async def test_nodes_and_logins_that_are_long_gone_are_forgotten(loops: Loops, fake_clock: FakeClock) -> None:
    now = fake_clock.now()
    login = Login(LoginKey("gone", "claude", "/h"), LoginState.WORKS, now, looked_at=now)
    await loops.store.transact(lambda tx: tx.nodes.put(Node("gone", "box", (), NodeState.STOPPED, now)))
    await loops.store.transact(lambda tx: tx.logins.put(login))
    _, old = duties(loops, "own_1", "here").phases(loops.city)
    fake_clock.advance(FORGOTTEN_AFTER)
    assert await old.tick() == 0
    fake_clock.advance(SECOND)
    assert await old.tick() == 1
    assert len(await loops.store.read(lambda tx: tx.logins.all())) == 1
    fake_clock.advance(logins.FORGOTTEN_AFTER)
    await old.tick()
    assert await loops.store.read(lambda tx: tx.logins.all()) == []
