"""A time limit for a block: in an ordinary task, and in one that is being cancelled."""

import asyncio

import pytest

from lamplighter.kit.limits import TimeLimit

WITHIN = 120


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_block_that_takes_too_long_raises_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.01):
            await for_ever()


async def test_a_block_within_its_limit_ends_as_it_would_without() -> None:
    async with TimeLimit(WITHIN):
        pass
    with pytest.raises(ValueError, match="mine"):
        async with TimeLimit(WITHIN):
            raise ValueError("mine")


async def test_after_a_timeout_the_task_is_not_cancelled() -> None:
    with pytest.raises(TimeoutError):
        async with TimeLimit(0):
            await for_ever()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_limit_in_a_task_that_is_being_cancelled_raises_a_timeout() -> None:
    heard: list[str] = []

    async def cleans_up_slowly() -> None:
        try:
            await for_ever()
        finally:
            try:
                async with TimeLimit(0.01):
                    await for_ever()
            except TimeoutError:
                heard.append("timeout")

    task = asyncio.create_task(cleans_up_slowly())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=WITHIN)
    assert heard == ["timeout"]
    assert task.cancelled()


async def test_a_cancellation_from_outside_goes_through() -> None:
    async def limited() -> None:
        async with TimeLimit(WITHIN):
            await for_ever()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_inner_of_two_limits_is_the_one_that_raises() -> None:
    heard: list[str] = []
    async with TimeLimit(WITHIN):
        try:
            async with TimeLimit(0.01):
                await for_ever()
        except TimeoutError:
            heard.append("inner")
    assert heard == ["inner"]
