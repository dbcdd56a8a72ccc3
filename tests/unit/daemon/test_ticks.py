"""The tick: phases in order, a woken one alone, floors kept, problems shown and cleared."""

import asyncio
from datetime import timedelta

import pytest

from lamplighter.daemon.ticks import Phase, Ticks
from lamplighter.kit.errors import Fenced, Unavailable
from lamplighter.store.engine.wakes import Wakes
from lamplighter.testing.clock import FakeClock

PATROL = timedelta(seconds=30)


class Work:
    """Notes each pass; fails while an error is set."""

    def __init__(self) -> None:
        self.passes = 0
        self.passed = asyncio.Event()
        self.error: Exception | None = None

    async def tick(self) -> None:
        self.passes += 1
        self.passed.set()
        if self.error is not None:
            raise self.error


@pytest.fixture
def work() -> dict[str, Work]:
    return {name: Work() for name in ("first", "second", "third")}


@pytest.fixture
def ticks(work: dict[str, Work], fake_clock: FakeClock) -> Ticks:
    phases = [
        Phase("first", work["first"].tick, topics=("ones", "all")),
        Phase("second", work["second"].tick, topics=("twos", "all")),
        Phase("third", work["third"].tick, topics=("threes",), at_most_every=timedelta(seconds=60)),
    ]
    return Ticks(phases, fake_clock, PATROL)


async def test_a_patrol_runs_every_phase_in_order(ticks: Ticks, fake_clock: FakeClock) -> None:
    assert await ticks.tick() == ["first", "second", "third"]
    assert ticks.last_tick_at == fake_clock.now()
    assert ticks.until_next() == PATROL
    assert await ticks.tick() == []


async def test_a_wakeup_runs_only_its_own_phase(ticks: Ticks) -> None:
    await ticks.tick()
    ticks.wake_phase("second")
    assert await ticks.tick() == ["second"]
    assert await ticks.tick() == []


async def test_two_woken_phases_run_in_their_order(ticks: Ticks) -> None:
    await ticks.tick()
    ticks.wake_phase("second")
    ticks.wake_phase("first")
    assert await ticks.tick() == ["first", "second"]


async def test_a_floor_holds_and_a_wakeup_before_it_is_not_forgotten(ticks: Ticks, fake_clock: FakeClock) -> None:
    await ticks.tick()
    fake_clock.advance(PATROL)
    assert await ticks.tick() == ["first", "second"]
    ticks.wake_phase("third")
    assert await ticks.tick() == []
    assert ticks.until_next() == timedelta(seconds=30)
    fake_clock.advance(29)
    assert await ticks.tick() == []
    assert ticks.until_next() == timedelta(seconds=1)
    fake_clock.advance(1)
    assert await ticks.tick() == ["first", "second", "third"]


async def test_a_problem_is_shown_while_it_lasts_and_stops_nobody_else(ticks: Ticks, work: dict[str, Work]) -> None:
    work["first"].error = Unavailable("The disk is full.")
    assert await ticks.tick() == ["first", "second", "third"]
    assert ticks.problems == {"first": "The disk is full."}
    work["first"].error = None
    ticks.wake_phase("first")
    await ticks.tick()
    assert ticks.problems == {}


async def test_a_bug_ends_the_tick(ticks: Ticks, work: dict[str, Work]) -> None:
    work["first"].error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await ticks.tick()


async def test_a_fenced_process_stops_ticking(ticks: Ticks, work: dict[str, Work]) -> None:
    work["first"].error = Fenced("buried")
    with pytest.raises(Fenced):
        await ticks.tick()
    assert work["second"].passes == 0


async def test_everything_is_roused_at_once(ticks: Ticks) -> None:
    await ticks.tick()
    ticks.wake_all()
    assert await ticks.tick() == ["first", "second"]


async def test_topics_wake_the_phases_that_wait_for_them(
    ticks: Ticks, work: dict[str, Work], fake_clock: FakeClock
) -> None:
    wakes = Wakes()
    ticks.listen(wakes)
    loop = asyncio.create_task(ticks.loop())
    await fake_clock.sleepers()
    work["second"].passed.clear()
    wakes.publish({"twos"})
    async with asyncio.timeout(10):
        await work["second"].passed.wait()
    assert (work["first"].passes, work["second"].passes) == (1, 2)
    loop.cancel()
    await asyncio.wait({loop})
