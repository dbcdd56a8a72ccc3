"""A step that waits is interrupted by a message, and only by a message."""

import asyncio
from typing import Any

import pytest

from lamplighter.daemon.pipeline.jobs import Work
from lamplighter.domain.runs.job import Message, Over, RunEnded, ToldToStop


def work_of(step: Any) -> tuple[Work, "asyncio.Task[Message]"]:
    work = Work(row=None)  # type: ignore[arg-type]  # its run is not looked at here
    task = asyncio.ensure_future(work.interruptible(step))
    work.task = task  # type: ignore[assignment]  # a task of the worker returns nothing
    return work, task


async def for_ever() -> Message:
    await asyncio.Event().wait()
    return Over()


async def test_a_message_interrupts_a_step_once_and_leaves_the_task_uncancelled() -> None:
    work, task = work_of(for_ever())
    await asyncio.sleep(0)
    work.tell(RunEnded())
    work.tell(ToldToStop())
    assert await task == RunEnded()
    assert task.cancelling() == 0
    assert list(work.inbox) == [ToldToStop()], "it is left for the steps that follow"
    assert work.wake.is_set()


async def test_what_the_step_comes_to_by_itself_is_its_message() -> None:
    async def step() -> Message:
        return Over(gone=True)

    _work, task = work_of(step())
    assert await task == Over(gone=True)


async def test_a_message_that_comes_before_a_step_interrupts_nothing() -> None:
    work = Work(row=None)  # type: ignore[arg-type]  # its run is not looked at here
    work.tell(ToldToStop())
    assert list(work.inbox) == [ToldToStop()]


async def test_a_cancellation_without_a_message_goes_on() -> None:
    work, task = work_of(for_ever())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not work.inbox


async def test_a_step_that_finishes_despite_the_message_keeps_what_it_came_to() -> None:
    async def stubborn() -> Message:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Over()
        raise AssertionError

    work, task = work_of(stubborn())
    await asyncio.sleep(0)
    work.tell(ToldToStop())
    assert await task == Over()
    assert list(work.inbox) == [ToldToStop()]
