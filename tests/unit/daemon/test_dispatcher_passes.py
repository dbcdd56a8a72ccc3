"""A pass of the dispatcher: what it looks for and how often, how much it claims, and how long it sleeps after it."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.pipeline import dispatcher as module
from lamplighter.daemon.pipeline.dispatcher import CLAIM_AT_ONCE, HELD_BACK, HUNG_EVERY, POLL, SOON, Dispatcher
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.delivery.reach import Reach
from lamplighter.services import outbox
from lamplighter.services.runs import claiming, review
from lamplighter.services.runs.starting import Taken
from lamplighter.store.errors import StoreUnavailable
from lamplighter.testing.clock import FakeClock

SECOND = timedelta(seconds=1)


class World:
    """The outbox, the worker and the handlers of a dispatcher, as a test says that they are."""

    def __init__(self, clock: FakeClock, *, only: str | None = None) -> None:
        self.clock = clock
        self.next: datetime | None = None
        self.batches: list[Taken] = []
        self.asked: list[str] = []
        self.limits: list[int] = []
        self.adopted = self.doubts = self.hung = 0
        self.left = 0
        self.down = self.refused = False
        self.handled: list[str] = []
        self.lost: set[str] = set()
        self.hold: asyncio.Event | None = None
        self.begun: list[str] = []
        self.worker = SimpleNamespace(
            give_back=self._give_back, adopt=self._adopt, room=99, me=SimpleNamespace(actor="worker"),
            doubt=self._doubt, begin_all=self.begun.extend, released=frozenset({"run_0"}),
            active=SimpleNamespace(reach=Reach("here", frozenset()), bounds_commands=False),
        )  # fmt: skip
        self.made = Dispatcher(
            cast("Any", self), clock, cast("Any", SimpleNamespace()), cast("Any", self.worker),
            cast("Any", SimpleNamespace(handle=self._handle)), cast("Any", SimpleNamespace(check=self._check)),
            only=only,
        )  # fmt: skip

    async def read(self, work: object, *_args: object, **_named: object) -> datetime | None:
        assert work is outbox.next_due_at
        self.asked.append("next")
        return self.next

    async def transact(self, work: object, *_args: object, **named: Any) -> Any:
        if self.down:
            raise StoreUnavailable("The database is away.")
        if work is outbox.take_back_hung:
            self.hung += 1
            return 0
        assert work is claiming.take_due
        assert named["released"] == {"run_0"}
        self.asked.append("take")
        self.limits.append(named["limit"])
        return self.batches.pop(0) if self.batches else Taken([], [], None)

    async def _check(self) -> None:
        if self.refused:
            raise StoreUnavailable("The clock cannot be asked for.")

    async def _give_back(self, _handled: object) -> int:
        return self.left

    async def _adopt(self) -> int:
        self.adopted += 1
        return 0

    def _doubt(self) -> None:
        self.doubts += 1

    async def _handle(self, item: Item) -> bool:
        if self.hold is not None:
            await self.hold.wait()
        self.handled.append(item.id)
        return item.id not in self.lost

    def take(self, *ids: str, then: datetime | None = None, started: tuple[str, ...] = ()) -> Taken:
        items = [Item(one, "notify_automation", {}, self.clock.now()) for one in ids]
        return Taken(cast("Any", list(started)), items, then)


@pytest.fixture
def world(fake_clock: FakeClock) -> World:
    return World(fake_clock)


async def test_what_is_due_is_claimed_batch_by_batch_until_nothing_is_and_then_it_sleeps_until_the_next(
    world: World, fake_clock: FakeClock
) -> None:
    now = fake_clock.now()
    world.next = now
    world.batches = [world.take("a", "b", then=now, started=("r1",)), world.take("c", then=now + 3 * SECOND)]
    assert await world.made.tick() == 4
    await world.made.handling.all_done()
    assert (world.handled, world.begun) == (["a", "b", "c"], ["r1"])
    assert world.asked == ["next", "take", "take"]
    assert world.limits == [CLAIM_AT_ONCE, CLAIM_AT_ONCE]
    assert world.made.until_next() == 3 * SECOND
    fake_clock.advance(4 * SECOND)
    assert world.made.until_next() == timedelta(0)


async def test_what_is_due_and_cannot_be_taken_is_not_asked_for_again_at_once(
    world: World, fake_clock: FakeClock
) -> None:
    world.next = fake_clock.now()
    world.batches = [world.take(then=fake_clock.now())]
    assert await world.made.tick() == 0
    assert world.asked == ["next", "take"]
    assert world.made.until_next() == HELD_BACK
    world.next = None
    await world.made.tick()
    assert world.made.until_next() == POLL
    world.next = fake_clock.now() + 99 * SECOND
    await world.made.tick()
    assert world.asked[2:] == ["next", "next"], "nothing is claimed before its time"
    assert world.made.until_next() == POLL


async def test_an_item_that_was_just_added_is_claimed_without_a_look_and_others_wait_until_they_are_due(
    world: World, fake_clock: FakeClock
) -> None:
    now = fake_clock.now()
    world.made._item_added()
    assert world.made.wake.is_set()
    world.batches = [world.take("a", then=now + 60 * SECOND)]
    assert await world.made.tick() == 1
    assert world.asked == ["take"]
    world.made.wake.clear()
    world.made._item_waits()
    assert world.made.wake.is_set(), "the next that is known is due later"
    world.next = now + 60 * SECOND
    await world.made.tick()
    assert world.made.until_next() == POLL
    world.next = now + SOON
    await world.made.tick()
    world.made.wake.clear()
    world.made._item_waits()
    assert not world.made.wake.is_set(), "it looks soon anyway"


async def test_no_more_is_claimed_than_there_is_room_for_and_room_that_is_made_wakes_it(
    world: World, fake_clock: FakeClock
) -> None:
    now = fake_clock.now()
    world.hold = asyncio.Event()
    world.worker.room = 3
    world.next = now
    world.batches = [world.take("a", "b", then=now), world.take("c", then=now)]
    assert await world.made.tick() == 3
    assert world.limits == [3, 1]
    assert not world.made.wake.is_set()
    world.made._room_made()
    assert world.made.wake.is_set()
    world.made.wake.clear()
    world.hold.set()
    await world.made.handling.all_done()
    assert world.made.wake.is_set(), "the places of what was handled are free"
    world.next = None
    world.batches = []
    await world.made.tick()
    world.made.wake.clear()
    world.made._room_made()
    assert world.made.wake.is_set(), "the last pass that looked left something"
    world.next = now
    world.batches = [world.take(then=None)]
    await world.made.tick()
    world.made.wake.clear()
    world.made._room_made()
    assert not world.made.wake.is_set()


async def test_orphans_are_looked_for_at_first_when_somebody_died_and_once_in_a_while(
    world: World, fake_clock: FakeClock
) -> None:
    counts = []

    async def ticked(by: timedelta = timedelta(0)) -> None:
        fake_clock.advance(by)
        await world.made.tick()
        counts.append(world.adopted)

    await ticked()
    await ticked(POLL - SECOND)
    await ticked(SECOND)
    world.made._somebody_died()
    assert world.made.wake.is_set()
    await ticked()
    await ticked()
    world.left = 1
    await ticked()
    assert counts == [1, 1, 2, 3, 3, 4]


async def test_claims_that_hang_are_taken_back_once_in_a_while(world: World, fake_clock: FakeClock) -> None:
    counts = []
    for by in (timedelta(0), HUNG_EVERY - SECOND, SECOND, SECOND):
        fake_clock.advance(by)
        await world.made.tick()
        counts.append(world.hung)
    assert counts == [1, 1, 2, 2]


async def test_a_command_works_on_its_own_run_and_adopts_no_other(fake_clock: FakeClock) -> None:
    world = World(fake_clock, only="run_1")
    world.made._somebody_died()
    await world.made.tick()
    assert world.adopted == 0


async def test_what_may_be_held_without_being_known_is_doubted(world: World, fake_clock: FakeClock) -> None:
    world.next = fake_clock.now()
    world.lost = {"a"}
    world.batches = [world.take("a", "b")]
    await world.made.tick()
    await world.made.handling.all_done()
    await asyncio.sleep(0)
    assert (world.doubts, world.made._items) == (1, {})
    world.down = True
    world.next = fake_clock.now()
    with pytest.raises(StoreUnavailable):
        await world.made.tick()
    assert world.doubts == 2
    world.refused = True
    with pytest.raises(StoreUnavailable):
        await world.made.tick()
    assert world.doubts == 2, "nothing was taken, for the clock comes first"


@pytest.mark.parametrize("error", [OSError("no descriptor"), StoreUnavailable("away")])
async def test_what_cannot_be_tidied_stops_no_work_but_without_its_database_it_stops(
    world: World, error: Exception
) -> None:
    async def tidying() -> None:
        raise error

    if isinstance(error, StoreUnavailable):
        with pytest.raises(StoreUnavailable):
            await world.made._tidied(tidying())
    else:
        await world.made._tidied(tidying())


async def test_a_topic_wakes_it_by_what_it_says(world: World) -> None:
    calls: dict[str, Callable[[], None]] = {}

    def watch(topics: tuple[str, ...], call: Callable[[], None], _token: object) -> None:
        calls.update(dict.fromkeys(topics, call))

    world.made.listen(cast("Any", SimpleNamespace(watch=watch)))
    assert set(calls) == {module.OUTBOX, module.LATER, review.TAKEN}
    for topic, mark in ((module.OUTBOX, "_added"), (module.LATER, "_waits"), (review.TAKEN, "_taken")):
        setattr(world.made, mark, False)
        world.made.wake.clear()
        calls[topic]()
        assert (getattr(world.made, mark), world.made.wake.is_set()) == (True, True)
