"""A command that waits for its database: what is repeated, what is not, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lamplighter.store.errors import CommitUnknown, Settled, StoreOld, StoreUnavailable
from lamplighter.store.patience import Patience, PatientStore


@dataclass
class Time:
    now: float = 0.0
    told: list[StoreUnavailable] = field(default_factory=list)

    def patience(self, seconds: float) -> Patience:
        return Patience(seconds, self.told.append, monotonic=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Unsteady:
    """A database that answers in turn with what it was given: a value, or an error to raise."""

    answers: list[Any]
    opened: int = 0
    closed: int = 0

    def open(self) -> "Unsteady":
        self.opened += 1
        return self

    def transact(self, fn: Callable[..., Any], *_args: Any, **_kwargs: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return fn(answer)

    read = transact

    def close(self) -> None:
        self.closed += 1


def away() -> StoreUnavailable:
    return StoreUnavailable("away")


def unknown(*settled: Settled | Exception) -> CommitUnknown:
    error = CommitUnknown("there")
    left = list(settled)

    def settle() -> Settled:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    error.settle = settle
    return error


def patient(store: Unsteady, time: Time, seconds: float = 60.0) -> PatientStore:
    return PatientStore(store.open, time.patience(seconds))  # type: ignore[arg-type]  # a store for this test


def test_the_store_is_opened_when_first_needed_and_once() -> None:
    store, time = Unsteady([1, 2]), Time()
    waiting = patient(store, time)
    waiting.close()
    assert (store.opened, store.closed) == (0, 0)
    assert [waiting.read(lambda tx: tx), waiting.transact(lambda tx: tx)] == [1, 2]
    waiting.close()
    assert (store.opened, store.closed) == (1, 1)


def test_it_tries_again_with_growing_pauses_and_tells_once_that_it_waits() -> None:
    store, time = Unsteady([*(away() for _ in range(8)), "there"]), Time()
    assert patient(store, time).transact(lambda tx: tx) == "there"
    assert time.now == pytest.approx(0.1 + 0.2 + 0.4 + 0.8 + 1.6 + 2 + 2 + 2)
    assert len(time.told) == 1


def test_a_short_absence_is_not_told() -> None:
    store, time = Unsteady([away(), away(), "there"]), Time()
    assert patient(store, time).read(lambda tx: tx) == "there"
    assert time.told == []


def test_its_patience_has_an_end() -> None:
    store, time = Unsteady([away() for _ in range(1000)]), Time()
    with pytest.raises(StoreUnavailable):
        patient(store, time, seconds=7.0).transact(lambda tx: tx)
    assert time.now == pytest.approx(7.0)


def test_what_will_not_pass_is_raised_at_once() -> None:
    store, time = Unsteady([StoreOld("there", 1, 2)]), Time()
    with pytest.raises(StoreOld):
        patient(store, time).transact(lambda tx: tx)
    assert time.now == 0.0


def test_a_commit_that_took_is_not_repeated() -> None:
    store, time = Unsteady([unknown(away(), Settled(True, "kept"))]), Time()
    assert patient(store, time).transact(lambda tx: tx) == "kept"


def test_a_commit_that_did_not_take_is_repeated() -> None:
    store, time = Unsteady([unknown(Settled(False, None)), "again"]), Time()
    assert patient(store, time).transact(lambda tx: tx) == "again"


@pytest.mark.parametrize("error", [unknown(Settled(None, None)), CommitUnknown("there")], ids=["asked", "not asked"])
def test_a_commit_of_which_nothing_can_be_found_out_is_told_and_not_repeated(error: CommitUnknown) -> None:
    store, time = Unsteady([error, "never"]), Time()
    with pytest.raises(CommitUnknown):
        patient(store, time).transact(lambda tx: tx)
    assert store.answers == ["never"]
