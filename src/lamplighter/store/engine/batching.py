"""Transaction functions that can do the work of many calls at once, and how waiting calls are grouped for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from lamplighter.store.engine.jobs import Job, Outcome
from lamplighter.store.tx import Tx

F = TypeVar("F", bound=Callable[..., Any])


class Call(NamedTuple):
    """One caller's arguments, as it gave them."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The error of one call, found before anything was written for it; the other calls of its batch are unaffected."""

    error: Exception


Many = Callable[[Tx, Sequence[Call]], Sequence[Any]]
"""Returns one answer per call, in order, each a value or Refused. If it raises, the whole batch is rolled back."""


def batched(many: Many) -> Callable[[F], F]:
    """Mark a transaction function: calls of it that wait at the same time are passed to `many` together."""

    def mark(fn: F) -> F:
        fn.many = many  # type: ignore[attr-defined]  # a mark, read by `Job.many` and nowhere else
        return fn

    return mark


def batches(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group the jobs that can be done together; all waiting jobs are concurrent, so any order of them is allowed."""
    together: dict[object, list[Job]] = {}
    for job in jobs:
        together.setdefault(job.many or job.answer, []).append(job)
    return list(together.values())


def run_batch(tx: Tx, jobs: Sequence[Job]) -> list[Outcome]:
    many = jobs[0].many
    assert many is not None  # noqa: S101  only such jobs are grouped
    answers = many(tx, [Call(job.args, job.kwargs) for job in jobs])
    return [_outcome(job, answer) for job, answer in zip(jobs, answers, strict=True)]


def one(answers: Sequence[Any]) -> Any:
    """The answer of a batch with a single call. Raises the error with which the call was refused."""
    [answer] = answers
    if isinstance(answer, Refused):
        raise answer.error
    return answer


def _outcome(job: Job, answer: Any) -> Outcome:
    return Outcome(job, error=answer.error) if isinstance(answer, Refused) else Outcome(job, value=answer)
