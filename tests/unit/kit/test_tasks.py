"""Tasks that nobody awaits."""

import asyncio

import pytest
from structlog.testing import capture_logs

from lamplighter.kit.tasks import spawn


async def fail() -> None:
    raise RuntimeError("broken")


async def succeed() -> int:
    return 1


async def test_the_failure_of_a_task_that_nobody_awaits_is_logged() -> None:
    with capture_logs() as told:
        await asyncio.wait({spawn(fail(), name="errand")})
        await asyncio.sleep(0)
    assert [(line["event"], line["task"]) for line in told] == [("task.failed", "errand")]


async def test_one_that_ends_well_or_is_cancelled_is_not() -> None:
    with capture_logs() as told:
        assert await spawn(succeed(), name="errand") == 1
        task = spawn(asyncio.sleep(1000), name="nap")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert told == []
