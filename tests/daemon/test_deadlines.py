"""A run that waits is ended when its deadline comes; nobody patrols here."""

import asyncio
from datetime import timedelta

from loops_city import Loops

from lamplighter.daemon.pipeline.deadlines import LATEST, Deadlines
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource


class Ahead(SystemClock):
    def __init__(self) -> None:
        self.by = timedelta(0)

    def now(self):  # noqa: ANN201  as its parent
        return super().now() + self.by

    def monotonic(self) -> float:
        return super().monotonic() + self.by.total_seconds()


async def test_a_waiting_run_is_ended_at_its_deadline_although_a_later_one_was_waited_for(loops: Loops) -> None:
    await loops.add("later", exec="true", deadline="1h")
    await loops.add("soon", exec="true", deadline="1s")
    later = await loops.fire("later")
    loop = asyncio.create_task(loops.parts.deadlines.loop())
    try:
        soon = await loops.fire("soon")

        async def ended() -> bool:
            return (await loops.get(soon)).state is RunState.TIMED_OUT

        await loops.until(ended)
        row = await loops.get(soon)
        assert row.reason == "deadline_exceeded"
        assert row.deadline_at is not None
        assert row.ended_at is not None
        assert row.ended_at >= row.deadline_at
        assert (await loops.get(later)).state is RunState.READY
    finally:
        loop.cancel()
        await asyncio.wait({loop})


async def test_it_sleeps_while_nothing_waits_and_looks_at_most_once_a_second(loops: Loops) -> None:
    clock = Ahead()
    deadlines = Deadlines(loops.store, clock, IdSource(clock))
    assert await deadlines.tick() == []
    assert deadlines.until_next() == LATEST / 2
    await loops.add("soon", exec="true", deadline="10s")
    run = await loops.fire("soon")
    deadlines._look()
    assert await deadlines.tick() == []
    assert timedelta(0) < deadlines.until_next() <= timedelta(seconds=1)  # the last look was just now
    clock.by = timedelta(seconds=2)
    assert await deadlines.tick() == []
    assert timedelta(seconds=1) < deadlines.until_next() <= timedelta(seconds=8)
    clock.by = timedelta(seconds=20)
    assert deadlines.until_next() == timedelta(0)
    assert await deadlines.tick() == [run]


async def test_a_deadline_far_ahead_is_found_in_time(loops: Loops) -> None:
    clock = Ahead()
    deadlines = Deadlines(loops.store, clock, IdSource(clock))
    await loops.add("far", exec="true", deadline="2h")
    run = await loops.fire("far")
    ended: list[str] = []
    for _ in range(20):
        ended += await deadlines.tick()
        if ended:
            break
        clock.by += deadlines.until_next() + timedelta(seconds=1)
    assert ended == [run]
    assert clock.by < timedelta(hours=2, seconds=30)
