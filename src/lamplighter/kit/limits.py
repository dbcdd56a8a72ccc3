"""A time limit for a block of code in a task."""

from types import TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TimeLimit:
    """`async with TimeLimit(seconds)`: raises TimeoutError if the block takes longer.

    Unlike asyncio.timeout it also works inside a task that is being cancelled: there, before Python 3.11.3, the
    standard one raises CancelledError instead, so that one step with a limit would end a whole clean-up.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = max(seconds, 0.0)
        self._expired = False

    async def __aenter__(self) -> None:
        import asyncio

        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine runs in a task
        self._task: asyncio.Task[Any] = task
        self._cancelled = asyncio.CancelledError
        self._cancels_before = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if not self._expired:
            return
        cancels = self._task.uncancel()
        # A cancellation from elsewhere that came in the meantime stays a cancellation.
        if kind is not None and issubclass(kind, self._cancelled) and cancels <= self._cancels_before:
            raise TimeoutError from error

    def end(self) -> None:
        """End the block now, from another task, as if its time were over."""
        self._timer.cancel()
        if not self._expired:
            self._expire()

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
