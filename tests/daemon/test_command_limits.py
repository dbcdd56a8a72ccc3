"""The time limit of a command counts from its start, whoever follows it."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from loops_city import CITY
from patrol_town import ShiftedClock

from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import Command
from lamplighter.testing.puppets import until


async def test_a_command_that_is_adopted_has_only_what_is_left_of_its_time(tmp_path: Path) -> None:
    clock = ShiftedClock()
    command = Command(
        key="run_1", line="echo begun; sleep 4711", work_dir=str(tmp_path), limit=timedelta(minutes=10),
        env=dict(os.environ), files={},
    )  # fmt: skip

    def commands() -> ShimCommands:
        return ShimCommands(tmp_path / "commands", city=CITY, clock=clock, ids=IdSource(clock))

    first = commands()
    following = asyncio.create_task(first.run(command))

    async def begun() -> bool:
        return "begun" in await first.tail("run_1")

    await until(begun)
    following.cancel()  # as a process that dies leaves it
    await asyncio.wait({following})
    clock.advance(minutes=11)
    second = commands()
    async with asyncio.timeout(30):
        ended = await second.run(command)
    assert (ended.timed_out, ended.exit_code) == (True, None)
    await second.forget("run_1")
