"""A tick of the scheduler: what it asks, how long it sleeps, and that one trigger's bug silences no other."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.scheduler import AT_ONCE, LOCKED_ELSEWHERE, POLL, ROUNDS, Scheduler
from lamplighter.kit.ids import IdSource
from lamplighter.services import clock_back, retention
from lamplighter.services.automations import due
from lamplighter.services.automations.due import PassReport, Peek
from lamplighter.store.errors import StoreUnavailable
from lamplighter.testing.clock import FakeClock

SECOND = timedelta(seconds=1)


class World:
    """The store and the worker of a scheduler, as a test says that they are."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.peeks: list[Peek] = []
        self.reports: list[PassReport | Exception] = []
        self.alone: dict[str, PassReport | Exception] = {}
        self.ahead: timedelta | None = None
        self.skewed = False
        self.asked: list[str] = []
        self.scanned: list[int] = []
        self.begun: list[Any] = []
        worker: Any = SimpleNamespace(start_grant=self._grant, begin_all=self.begun.extend)
        active: Any = SimpleNamespace(rules=None)
        guard: Any = SimpleNamespace(check=self._check)
        self.made = Scheduler(cast("Any", self), clock, IdSource(clock), active, guard, worker)

    @contextmanager
    def _grant(self, most: int) -> Iterator[str]:
        assert most == AT_ONCE
        yield "a grant"

    async def _check(self) -> None:
        self.asked.append("clock")

    async def clock_offset(self) -> timedelta:
        return timedelta(minutes=5) if self.skewed else timedelta(0)

    async def read(self, work: object, *args: Any) -> Any:
        if work is clock_back.ahead:
            return self.ahead
        if work is due.scanned_to:
            return 7
        if work is retention.unread_events:
            return 3
        assert work is due.peek
        self.asked.append(f"peek {args[0]}")
        return self.peeks.pop(0) if self.peeks else Peek(unseen=False, next_due_at=None)

    async def transact(self, work: object, *args: Any, **named: Any) -> Any:  # noqa: PLR0911  a table of transactions
        if work is clock_back.mend:
            self.asked.append(f"mend {args[0]}")
            return None
        if work is due.scan_events:
            self.asked.append("scan")
            return args[0] + 10
        if work is due.due_keys:
            return [(one, "t") for one in self.alone]
        if work is due.put_aside:
            self.asked.append(f"aside {args[0][0]}: {args[1]}")
            return None
        if work is due.fire_alone:
            return _told(self.alone[args[0][0]])
        if work is due.fire_due:
            self.asked.append(f"fire {named['limit']} with {named['start_grant']}")
            return _told(self.reports.pop(0) if self.reports else PassReport())
        cast("Any", work)(SimpleNamespace(cities=SimpleNamespace(scanned=self.scanned.append)))
        return None


def _told(found: PassReport | Exception) -> PassReport:
    if isinstance(found, Exception):
        raise found
    return found


@pytest.fixture
def world(fake_clock: FakeClock) -> World:
    return World(fake_clock)


def peek(*, unseen: bool = False, at: datetime | None = None) -> Peek:
    return Peek(unseen, at)


async def test_a_tick_with_nothing_to_do_asks_once_and_sleeps_until_the_next_is_due(
    world: World, fake_clock: FakeClock
) -> None:
    now = fake_clock.now()
    for at, sleeps in ((None, POLL), (now + 5 * SECOND, 5 * SECOND), (now + 99 * SECOND, POLL)):
        world.peeks = [peek(at=at)]
        world.asked.clear()
        assert await world.made.tick() == []
        assert world.asked == ["clock", "peek 7"]
        assert world.made.until_next() == sleeps
    world.peeks = [peek(at=now + 5 * SECOND)]
    await world.made.tick()
    fake_clock.advance(6 * SECOND)
    assert world.made.until_next() == timedelta(0)


async def test_new_events_are_shown_to_the_triggers_and_what_is_due_is_fired_until_nothing_is(
    world: World, fake_clock: FakeClock
) -> None:
    now = fake_clock.now()
    world.peeks = [peek(unseen=True, at=now + SECOND), peek(at=now), peek(at=now + 3 * SECOND)]
    world.reports = [PassReport(looked_at=0), PassReport(fired=["run_1"], started=cast("Any", ["s1"]), looked_at=1)]
    assert await world.made.tick() == ["run_1"]
    grant = f"fire {AT_ONCE} with a grant"
    assert world.asked == ["clock", "peek 7", "scan", grant, "peek 17", grant, "peek 17"]
    assert (world.begun, world.made.position) == (["s1"], 17)
    assert world.made.until_next() == 3 * SECOND


async def test_what_another_process_holds_is_left_to_it_for_a_while(world: World, fake_clock: FakeClock) -> None:
    world.peeks = [peek(at=fake_clock.now())] * 3
    assert await world.made.tick() == []
    assert len([one for one in world.asked if one.startswith("peek")]) == 1
    assert world.made.until_next() == LOCKED_ELSEWHERE
    world.peeks = []
    await world.made.tick()
    assert world.made.until_next() == POLL


async def test_a_tick_is_bounded_and_goes_on_without_a_pause(world: World, fake_clock: FakeClock) -> None:
    world.peeks = [peek(at=fake_clock.now())] * (ROUNDS + 5)
    world.reports = [PassReport(fired=[str(number)], looked_at=1) for number in range(ROUNDS + 5)]
    assert len(await world.made.tick()) == ROUNDS
    assert world.made.until_next() == timedelta(0)


async def test_a_bug_about_one_trigger_puts_that_one_aside_and_the_others_fire(
    world: World, fake_clock: FakeClock
) -> None:
    world.peeks = [peek(at=fake_clock.now()), peek()]
    world.reports = [ValueError("a bug")]
    world.alone = {
        "a": PassReport(fired=["run_a"], looked_at=1), "b": KeyError("lamp"),
        "c": PassReport(fired=["run_c"], looked_at=1),
    }  # fmt: skip
    assert await world.made.tick() == ["run_a", "run_c"]
    assert "aside b: KeyError: 'lamp'" in world.asked


@pytest.mark.parametrize("alone", [True, False])
async def test_while_the_database_is_away_nothing_is_put_aside(
    world: World, fake_clock: FakeClock, *, alone: bool
) -> None:
    away = StoreUnavailable("The database is away.")
    world.peeks = [peek(at=fake_clock.now())]
    world.reports = [ValueError("a bug") if alone else away]
    world.alone = {"a": away}
    with pytest.raises(StoreUnavailable):
        await world.made.tick()
    assert not [one for one in world.asked if one.startswith("aside")]


async def test_times_are_mended_once_where_the_clock_was_set_back(world: World, fake_clock: FakeClock) -> None:
    world.ahead = timedelta(hours=1)
    await world.made.tick()
    await world.made.tick()
    assert [one for one in world.asked if one.startswith("mend")] == ["mend 1:00:00"]
    fake_clock.advance(10 * SECOND)
    fake_clock.set_back(timedelta(hours=2))
    await world.made.tick()
    assert [one for one in world.asked if one.startswith("mend")] == ["mend 1:00:00", "mend 2:00:00"]


async def test_a_machine_whose_own_clock_is_wrong_mends_nothing(world: World) -> None:
    world.ahead, world.skewed = timedelta(hours=1), True
    with pytest.raises(Exception, match="clock"):
        await world.made.tick()
    assert world.asked == ["clock"]


async def test_events_are_spared_from_the_position_that_is_written_down_first(world: World) -> None:
    assert await world.made.spared() == 3
    assert world.scanned == [], "it has not begun"
    await world.made.tick()
    assert await world.made.spared() == 3
    assert world.scanned == [7]
