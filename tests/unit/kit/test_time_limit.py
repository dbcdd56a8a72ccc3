"""A time limit: passed, kept, and in a task that was cancelled."""

import asyncio

import pytest

from lamplighter.kit.time_limit import TimeLimit

WITHIN = 10


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_what_takes_longer_is_cut_off_and_the_task_goes_on() -> None:
    with pytest.raises(TimeoutError):
        async with TimeLimit(0):
            await for_ever()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_ends_in_time_is_left_alone() -> None:
    async with TimeLimit(WITHIN):
        await asyncio.sleep(0)


async def test_a_cancellation_from_outside_is_none_of_its_business() -> None:
    async def waits() -> None:
        async with TimeLimit(WITHIN):
            await for_ever()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_limit_holds_in_a_task_that_cleans_up_after_its_cancellation() -> None:
    heard: list[str] = []

    async def cleans_up() -> None:
        try:
            await for_ever()
        finally:
            try:
                async with TimeLimit(0):
                    await for_ever()
            except TimeoutError:
                heard.append("limit")
            await asyncio.sleep(0)
            heard.append("done")

    task = asyncio.create_task(cleans_up())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=WITHIN)
    assert heard == ["limit", "done"]
    assert task.cancelled()
