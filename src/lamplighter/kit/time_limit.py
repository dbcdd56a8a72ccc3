"""A time limit for a few lines of waiting, which holds in a task that is being cancelled too."""

import asyncio
from types import TracebackType
from typing import Self


class TimeLimit:
    """`async with TimeLimit(seconds)` raises TimeoutError once they have passed.

    asyncio.timeout of Python 3.11 ends the whole task with CancelledError instead where the task had been cancelled
    before: that is where a stop waits for what it stops, and where the limit matters most.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit belongs to a task")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._expired and self._task.uncancel() <= self._cancelled_before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
