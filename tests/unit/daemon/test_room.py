"""How much a process takes on, and how many commands run side by side."""

import asyncio

import pytest

from lamplighter.daemon.pipeline.slots import AT_ONCE, HELD, SHARED, SOON, Slots
from lamplighter.domain.delivery.reach import Reach
from lamplighter.kit.clock import SystemClock
from lamplighter.services.runs.workers import Worker

ME = Worker("own_1", "here")


@pytest.fixture
def room() -> Slots:
    return Slots(SystemClock())


async def commands(room: Slots, count: int, seconds: float) -> int:
    """So many, all handed in together; how many ran side by side at most."""
    running = most = 0

    async def work(_what: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(seconds)
        running -= 1

    await asyncio.gather(*(room.run(work, number) for number in range(count)))
    return most


def promised(room: Slots, most: int = 10_000, reach: Reach | None = None) -> int:
    with room.reserve(ME, reach, most) as start_grant:
        assert room.promised >= start_grant.room
        return start_grant.room


async def test_however_many_are_handed_in_so_many_run_at_once(room: Slots) -> None:
    assert await commands(room, 5 * AT_ONCE, 0.01) == AT_ONCE


async def test_before_anything_is_known_of_them_little_more_is_started_than_can_run(room: Slots) -> None:
    assert AT_ONCE <= promised(room) <= AT_ONCE + 4
    assert promised(room, most=5) == 5
    assert room.promised == 0


async def test_what_is_over_in_no_time_may_be_started_ahead(room: Slots) -> None:
    await commands(room, 100, 0)
    assert promised(room) == AT_ONCE + SOON
    room.busy = AT_ONCE
    assert promised(room) == SOON
    with room.reserve(ME, None, 200):
        assert promised(room) == SOON - 200
    assert promised(room) == SOON


async def test_while_every_place_is_taken_nothing_is_started_ahead(room: Slots) -> None:
    await commands(room, 100, 0)
    release = asyncio.Event()

    async def work(_what: int) -> None:
        room.busy += 1
        await release.wait()
        room.busy -= 1

    long = [asyncio.create_task(room.run(work, number)) for number in range(AT_ONCE)]
    await asyncio.sleep(0)
    assert promised(room) == 0
    release.set()
    await asyncio.gather(*long)
    assert promised(room) > 0


async def test_beside_other_nodes_a_few(room: Slots) -> None:
    await commands(room, 100, 0)
    reach = Reach("here", frozenset())
    assert promised(room, reach=reach) == SHARED
    room.busy = SHARED
    assert promised(room, reach=reach) == 0


async def test_ends_that_are_not_written_down_bound_it_too(room: Slots) -> None:
    await commands(room, 100, 0)
    room.held = HELD - 3
    assert (room.left, promised(room)) == (3, 3)
    room.held = HELD + 1
    assert promised(room) == 0


async def test_one_that_leaves_while_it_waits_takes_no_place(room: Slots) -> None:
    release, ran = asyncio.Event(), []

    async def hold(_what: int) -> None:
        await release.wait()

    async def note(what: int) -> None:
        ran.append(what)

    holding = [asyncio.create_task(room.run(hold, number)) for number in range(AT_ONCE)]
    waiting = [asyncio.create_task(room.run(note, number)) for number in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    release.set()
    await asyncio.gather(*holding, waiting[0], waiting[2])
    assert ran == [0, 2]
