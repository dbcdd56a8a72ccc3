"""Starts that go one after another."""

import asyncio

from lamplighter.daemon.patrol.turns import LONGEST_TURN, Turns
from lamplighter.testing.clock import FakeClock


async def test_the_next_turn_begins_when_one_is_over_and_at_the_latest_when_it_has_taken_its_time() -> None:
    clock, begun, may_end = FakeClock(), [], asyncio.Event()
    turns = Turns(clock)

    async def take(number: int) -> None:
        async with turns.turn():
            begun.append(number)
            if number == 1:
                await may_end.wait()

    async def let_run() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(take(number))
        await let_run()
        assert begun == [0, 1]
        clock.advance(LONGEST_TURN)
        await let_run()
        assert begun == [0, 1, 2]
        may_end.set()
