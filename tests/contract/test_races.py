"""Two transactions at once on PostgreSQL: each mutating function locks its root row first, so one outcome stands."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamplighter.domain.beads.model import AlreadyClaimed, BeadStatus, NewBead
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import Conflict
from lamplighter.services import owners
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.tx import Store
from lamplighter.store.url import PostgresUrl, open_proofs, open_store
from lamplighter.testing.contracts.store import AT, CITY

ROUNDS = 15
CONTEXT = acting("tester", AT)


@pytest.fixture
async def rivals(postgres_place: PostgresUrl) -> AsyncIterator[list[Store]]:
    """Two stores, for two in one would share groups; in two, their transactions really overlap."""
    stores = [open_store(postgres_place, CITY, Wakes()) for _ in range(2)]
    await stores[0].transact(lambda tx: tx.cities.ensure("here", AT))
    yield stores
    for store in stores:
        await store.close()


async def race(*calls: Any) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_a_bead_claimed_by_two_has_one_holder(rivals: list[Store]) -> None:
    one, two = rivals
    for _ in range(ROUNDS):
        bead = await one.transact(beads.create, NewBead(title="work"), prefix="t", ctx=CONTEXT)
        outcomes = await race(
            one.transact(beads.claim, bead.id, "ann", ctx=CONTEXT),
            two.transact(beads.claim, bead.id, "ben", ctx=CONTEXT),
        )
        assert sum(isinstance(outcome, AlreadyClaimed) for outcome in outcomes) == 1
        winner = next(outcome for outcome in outcomes if not isinstance(outcome, Exception))
        assert (await one.read(beads.get, bead.id)).assignee == winner.assignee


async def test_closing_the_last_two_steps_at_once_closes_their_molecule(rivals: list[Store]) -> None:
    one, two = rivals
    for _ in range(ROUNDS):
        root = await one.transact(beads.create, NewBead(title="all", type="molecule"), prefix="t", ctx=CONTEXT)
        steps = [
            await one.transact(beads.create, NewBead(title="step", parent=root.id), prefix="t", ctx=CONTEXT)
            for _ in range(2)
        ]
        outcomes = await race(
            one.transact(beads.close, steps[0].id, ctx=CONTEXT), two.transact(beads.close, steps[1].id, ctx=CONTEXT)
        )
        assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert (await one.read(beads.get, root.id)).status is BeadStatus.CLOSED


async def test_a_bead_closed_by_two_is_closed_once(rivals: list[Store]) -> None:
    one, two = rivals
    for _ in range(ROUNDS):
        bead = await one.transact(beads.create, NewBead(title="work"), prefix="t", ctx=CONTEXT)
        await race(one.transact(beads.close, bead.id, ctx=CONTEXT), two.transact(beads.close, bead.id, ctx=CONTEXT))
        row = await one.read(
            lambda tx, bead_id=bead.id: tx.db.row(
                "SELECT count(*) AS n FROM events WHERE type = 'bead.closed' AND subject = :id", {"id": bead_id}
            )
        )
        assert row is not None
        assert row["n"] == 1


async def test_of_two_controllers_that_start_together_one_rules(
    rivals: list[Store], postgres_place: PostgresUrl
) -> None:
    for turn in range(5):
        candidates = [Owner(f"own_{turn}{n}", "controller", "host", n, AT) for n in range(2)]
        proofs = [await asyncio.to_thread(open_proofs, postgres_place) for _ in range(2)]
        for store, proof, owner in zip(rivals, proofs, candidates, strict=True):
            await owners.join(store, proof, owner, ctx=CONTEXT)
        outcomes = await race(
            *(
                owners.take_control(store, proof, owner, ctx=CONTEXT)
                for store, proof, owner in zip(rivals, proofs, candidates, strict=True)
            )
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ControlledElsewhere", "NoneType"]
        assert any(isinstance(outcome, Conflict) for outcome in outcomes)
        winner = candidates[outcomes.index(None)]
        city = await rivals[0].read(lambda tx: tx.cities.find())
        assert city is not None
        assert city.controller == winner.id
        for store, proof, owner in zip(rivals, proofs, candidates, strict=True):
            await owners.leave(store, proof, owner, clock=SystemClock())


async def test_a_dead_owner_is_buried_once_by_however_many(rivals: list[Store], postgres_place: PostgresUrl) -> None:
    for turn in range(5):
        dead = Owner(f"own_dead{turn}", "worker", "host", 1, AT)
        await rivals[0].transact(owners.register, dead)
        outcomes = await race(*(store.transact(owners.expire, dead, ctx=CONTEXT) for store in rivals for _ in range(3)))
        assert sum(outcome is not None for outcome in outcomes) == 1
    del postgres_place
