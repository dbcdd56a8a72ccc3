"""Transaction functions that can do the work of many calls at once, and how waiting calls are grouped for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from lamplighter.store.engine.jobs import Job, Many, Outcome
from lamplighter.store.engine.scope import Scope

P = ParamSpec("P")
S = TypeVar("S")
Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Refused:
    """The error of one call, found before anything was written for it; the other calls of its batch are unaffected."""

    error: Exception


def batched(
    ask: Callable[P, Q], many: Callable[[S, Sequence[Q]], Sequence[R | Refused]]
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Mark a transaction function: calls of it that wait at the same time are passed to `many` together.

    `ask` makes one request of the arguments of one call. `many` returns one answer per request, in order, each a value
    or Refused; if it raises, the whole batch is rolled back, and its calls are done one by one.
    """

    def mark(fn: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        fn.many = Many(ask, many)  # type: ignore[attr-defined]  # a mark, read by `Job.many` and nowhere else
        return fn

    return mark


def batches(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group the jobs of one function and one city; all waiting jobs are concurrent, so any order of them is allowed."""
    together: dict[object, list[Job]] = {}
    for job in jobs:
        together.setdefault(job.batch or job.answer, []).append(job)
    return list(together.values())


def run_batch(scope: Scope, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs of one batch with the scope of their city."""
    many = jobs[0].many
    assert many is not None  # noqa: S101  only such jobs are grouped
    answers = many.do(scope, [many.ask(*job.args, **job.kwargs) for job in jobs])
    return [_outcome(job, answer) for job, answer in zip(jobs, answers, strict=True)]


def one(answers: Sequence[R | Refused]) -> R:
    """The answer of a batch with a single call. Raises the error with which the call was refused."""
    [answer] = answers
    if isinstance(answer, Refused):
        raise answer.error
    return answer


def _outcome(job: Job, answer: Any) -> Outcome:
    return Outcome(job, error=answer.error) if isinstance(answer, Refused) else Outcome(job, value=answer)
