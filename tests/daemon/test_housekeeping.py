"""What is deleted when it is old: all of it in one tick, in batches, counted; what is young stays."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

from lamplighter.daemon.controller import ALWAYS
from lamplighter.daemon.housekeeping import Housekeeping
from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.events import EventFilter
from lamplighter.services import events, formulas, retention
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.store.engine.liveness import Proofs
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import SqliteUrl, open_store
from lamplighter.testing.clock import FakeClock

DAY = timedelta(days=1)


@pytest.fixture
async def upkeep(sqlite_place: SqliteUrl, fake_clock: FakeClock) -> AsyncIterator[Housekeeping]:
    store = open_store(sqlite_place, "cty_1", Wakes())
    await store.transact(lambda tx: tx.cities.ensure("town", fake_clock.now()))
    yield Housekeeping(store, cast("Proofs", None), fake_clock, "own_1")
    await store.close()


async def test_old_events_go_in_one_tick_and_young_ones_stay(upkeep: Housekeeping, fake_clock: FakeClock) -> None:
    old = events.PRUNE_AT_ONCE + 1

    def told(tx: Tx, count: int) -> None:
        for _ in range(count):
            tx.events.append(acting("test", fake_clock.now()).event("test.told"))

    await upkeep.store.transact(told, old)
    fake_clock.advance(DAY)
    await upkeep.store.transact(told, 2)
    assert await upkeep.prune_events(DAY / 2, spared_after=0) == 0, "the export has not read them"
    assert await upkeep.prune_events(DAY / 2, spared_after=ALWAYS) == old
    assert await upkeep.prune_events(DAY / 2, spared_after=ALWAYS) == 0
    assert len(await upkeep.store.read(lambda tx: tx.events.latest(EventFilter(), limit=10))) == 2


async def test_closed_wisps_go_in_one_tick_and_open_ones_stay(upkeep: Housekeeping, fake_clock: FakeClock) -> None:
    closed = formulas.COLLECT_AT_ONCE + 1

    def made(tx: Tx) -> str:
        ctx = acting("test", fake_clock.now())
        ids = [beads.create(tx, NewBead("Lamp", ephemeral=True), prefix="te", ctx=ctx).id for _ in range(closed + 1)]
        for one in ids[1:]:
            beads.close(tx, one, ctx=ctx)
        return ids[0]

    left = await upkeep.store.transact(made)
    assert await upkeep.collect_wisps(DAY) == 0
    fake_clock.advance(DAY * 2)
    assert await upkeep.collect_wisps(DAY) == closed
    assert await upkeep.collect_wisps(DAY) == 0
    assert await upkeep.store.read(lambda tx: tx.beads.get(left)) is not None


async def test_records_are_asked_for_until_a_batch_is_not_full(upkeep: Housekeeping, fake_clock: FakeClock) -> None:
    batches = [retention.AT_ONCE, retention.AT_ONCE, 3, 7]
    asked: list[Any] = []

    def batch(_tx: Tx, *, before: Any) -> int:
        asked.append(before)
        return batches[len(asked) - 1]

    assert await upkeep.prune("runs", DAY, batch) == 2 * retention.AT_ONCE + 3
    assert asked == [fake_clock.now() - DAY] * 3
