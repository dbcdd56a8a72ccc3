"""A transaction that waits for its turn, and how its outcome reaches the task that awaits it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamplighter.store.engine.scope import Scope, Work
from lamplighter.store.errors import StoreUnavailable

LATELY_SECONDS = 30.0


class Answer(asyncio.Future[Any]):
    """Cannot be cancelled: a cancelled caller gets its CancelledError only once the result of the commit is known."""

    __slots__ = ()

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002  the signature is asyncio's
        return False


class Many(NamedTuple):
    """How many calls of a function are done at once; see `batching`."""

    ask: Callable[..., Any]
    """Makes one request of the arguments of one call."""
    do: Callable[[Any, Sequence[Any]], Sequence[Any]]
    """Carries out the requests, and answers each."""


class Job(NamedTuple):
    city: str
    fn: Work
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    answer: Answer

    @property
    def many(self) -> Many | None:
        """How many calls of `fn` are done at once, if it can be; see `batching`."""
        return getattr(self.fn, "many", None)

    @property
    def batch(self) -> "Batch | None":
        """What the job can be done together with: the calls of one function that concern one city."""
        many = self.many
        return None if many is None else (many, self.city)

    def run(self, scope: Scope) -> Any:
        """Run it with the scope of its city."""
        return self.fn(scope, *self.args, **self.kwargs)


Batch = tuple[Many, str]
"""How many calls of one function are done at once, and the city they concern."""


class Outcome(NamedTuple):
    job: Job
    value: Any = None
    error: BaseException | None = None


class Trouble:
    """Why writes failed lately for want of the database: it is full, read-only, locked or away."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._message = ""
        self._at = float("-inf")

    def note(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome.error, StoreUnavailable):
                self._message, self._at = outcome.error.message, self._monotonic()

    @property
    def lately(self) -> str | None:
        """A write that succeeds meanwhile does not end it: it may have found room where others do not."""
        return self._message if self._monotonic() - self._at < LATELY_SECONDS else None


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
