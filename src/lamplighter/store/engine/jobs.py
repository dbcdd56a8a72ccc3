"""A transaction that waits for its turn, and how its outcome reaches the task that awaits it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamplighter.store.tx import Tx


class Answer(asyncio.Future[Any]):
    """Cannot be cancelled: a cancelled caller gets its CancelledError only once the result of the commit is known."""

    __slots__ = ()

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002  the signature is asyncio's
        return False


class Job(NamedTuple):
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    answer: Answer

    @property
    def many(self) -> Callable[..., Any] | None:
        """The function that does many calls of `fn` at once, if there is one; see `batching`."""
        return getattr(self.fn, "many", None)

    def run(self, tx: Tx) -> Any:
        return self.fn(tx, *self.args, **self.kwargs)


class Outcome(NamedTuple):
    job: Job
    value: Any = None
    error: BaseException | None = None


def deliver(outcomes: Sequence[Outcome]) -> None:
    """Pass outcomes to the event loops that await them, with one wake-up per loop. Called on a database thread."""
    if len(outcomes) == 1:
        _hand_over(outcomes[0].job.answer.get_loop(), outcomes)
        return
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome.job.answer.get_loop(), []).append(outcome)
    for loop, group in by_loop.items():
        _hand_over(loop, group)


def _hand_over(loop: asyncio.AbstractEventLoop, outcomes: Sequence[Outcome]) -> None:
    try:
        loop.call_soon_threadsafe(_settle, outcomes)
    except RuntimeError:  # the loop closed before its answers came; no task is left to receive them
        return


def passable(error: BaseException) -> BaseException:
    """A future cannot carry StopIteration: it would end the coroutine that awaits it as if it had returned."""
    if not isinstance(error, StopIteration):
        return error
    told = RuntimeError("the transaction function raised StopIteration")
    told.__cause__ = error
    return told


def _settle(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            outcome.job.answer.set_exception(passable(outcome.error))
        else:
            outcome.job.answer.set_result(outcome.value)
