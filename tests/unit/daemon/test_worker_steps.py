"""What a worker makes of how a step went: what is tried again, what is left to another holder, and what is freed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamplighter.daemon.pipeline import worker as module
from lamplighter.daemon.pipeline.jobs import Work
from lamplighter.daemon.pipeline.worker import RENEW_EVERY, STOP_TRIES, Worker, _fates
from lamplighter.domain.runs.job import (
    Began,
    Broke,
    Claimed,
    Job,
    Phase,
    RunEnded,
    Step,
    StepDone,
    StepFailed,
    TakenByPerson,
    TakenOver,
    TryAgain,
)
from lamplighter.domain.runs.lease import Lease, LeaseLost
from lamplighter.domain.runs.model import By, Mover, Run, RunState, Stage
from lamplighter.kit.errors import Conflict, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.runs import review, taking
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.runs import StaleRun
from lamplighter.testing.clock import FakeClock

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROW = Run("run_1", "sweep", RunState.RUNNING, NOW, lease=Lease(3, "own_1", NOW), action="exec")
AGENT = changed(ROW, action="agent")
ENDED = changed(ROW, state=RunState.FAILED, ended_at=NOW)
ENDING = review.Ending(RunState.SUCCEEDED)
AWAY = StoreUnavailable("The database is away.")
LOST = LeaseLost(2, Lease(3, "own_2", NOW))


class Store:
    """Answers as the test says; remembers the transactions."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.no_reads = False
        self.rows: dict[str, Run] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.answer: Any = None
        self.news: Any = None

    async def transact(self, work: object, *args: Any, **_named: Any) -> Any:
        self.asked.append((work, *args))
        if self.trouble is not None:
            raise self.trouble
        return self.answer

    async def read(self, work: Callable[..., Any], *args: Any) -> Any:
        if self.no_reads:
            raise AWAY
        if work is module._news:
            self.asked.append(("news", *args))
            return self.news
        tx = SimpleNamespace(runs=SimpleNamespace(get=self.rows.get))
        return work(tx, *args)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def worker(store: Store, fake_clock: FakeClock) -> Worker:
    none: Any = None
    me = review.Worker("own_1", "here")
    return Worker(cast("Any", store), fake_clock, IdSource(fake_clock), none, none, me)


def test_a_run_that_is_no_more_ours_went_to_another_or_has_ended_or_is_gone() -> None:
    rows = {"a": ROW, "b": ENDED, "c": changed(ENDED, completion_id="c1")}
    tx: Any = SimpleNamespace(runs=SimpleNamespace(get=rows.get))
    assert _fates(tx, ["a", "b", "c", "d"]) == {
        "a": TakenOver(), "b": RunEnded(), "c": RunEnded(completed=True), "d": RunEnded(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (None, StepDone()), (AWAY, TryAgain()), (Unavailable("busy"), TryAgain()), (LOST, TakenOver()),
        (StaleRun("run_1"), TakenOver()), (RunUnknown("run_1"), TakenOver()),
    ],
)  # fmt: skip
async def test_an_end_is_recorded_tried_again_or_left_to_who_has_the_run(
    worker: Worker, store: Store, trouble: Exception | None, message: object
) -> None:
    store.trouble, store.rows = trouble, {"run_1": ROW}
    for row in (ROW, AGENT):
        work = Work(row, ending=ENDING)
        assert await worker._record_end(work) == message
    assert [one[0] for one in store.asked] == [review.end_held, review.end]
    if isinstance(message, TakenOver):
        store.no_reads = True
        assert await worker._record_end(Work(ROW, ending=ENDING)) == TryAgain()


@pytest.mark.parametrize(
    ("stage", "mover"), [(None, Mover.WORKER), (Stage.EXECUTION, Mover.WORKER), (Stage.FINALIZER, Mover.FINALIZER)]
)
async def test_an_end_is_moved_under_the_lease_that_was_claimed(
    worker: Worker, store: Store, stage: Stage | None, mover: Mover
) -> None:
    await worker._record_end(Work(ROW, ending=changed(ENDING, stage=stage)))
    (_, row, _, by) = store.asked[0]
    assert (row, by) == (ROW, By(mover, "worker", 3))


@pytest.mark.parametrize(
    ("trouble", "answer", "message"),
    [
        (None, ROW, StepDone()),
        (None, ENDED, RunEnded()),
        (AWAY, None, TryAgain()),
        (LOST, None, RunEnded()),
        (RunUnknown("run_1"), None, RunEnded()),
    ],
)
async def test_a_run_that_a_person_took_is_let_go_of(
    worker: Worker, store: Store, trouble: Exception | None, answer: Run | None, message: object
) -> None:
    store.trouble, store.answer = trouble, answer
    assert await worker._hand_over(Work(AGENT)) == message
    assert store.asked == [(taking.hand_over, "run_1", 3)]


@pytest.mark.parametrize(
    ("trouble", "message", "error"),
    [
        (None, Began(), None), (AWAY, TryAgain(), None), (LOST, TakenOver(), None), (Conflict("No."), Broke(), "No."),
        (ValueError("a bug"), Broke(), "ValueError: a bug"),
    ],
)  # fmt: skip
async def test_a_step_at_work_that_breaks_ends_its_run_and_one_that_must_wait_does_not(
    worker: Worker, store: Store, trouble: Exception | None, message: object, error: str | None
) -> None:
    store.rows = {"run_1": ROW}

    async def step(_work: Work) -> Began:
        if trouble is not None:
            raise trouble
        return Began()

    work = Work(ROW)
    assert await worker._at_work(work, step) == message
    assert (work.ending.error if work.ending else None) == error


class Steps:
    def __init__(self, trouble: Exception | None) -> None:
        self.trouble = trouble

    async def _do(self, _work: Work) -> Any:
        if self.trouble is not None:
            raise self.trouble
        return StepDone()

    stop = release = last_words = _do


@pytest.mark.parametrize("trouble", [None, OSError("busy"), Conflict("No.")])
async def test_what_cannot_be_stopped_is_tried_some_times_and_never_counts_as_freed(
    worker: Worker, trouble: Exception | None
) -> None:
    steps, work = cast("Any", Steps(trouble)), Work(AGENT)
    tidied = lambda step: worker._tidied(work, step, steps)  # noqa: E731
    found = [await tidied(Step.STOP) for _ in range(STOP_TRIES)]
    assert found == ([StepDone()] * STOP_TRIES if trouble is None else [*[TryAgain()] * (STOP_TRIES - 1), StepFailed()])
    assert work.failures == (0 if trouble is None else STOP_TRIES)
    assert await tidied(Step.LAST_WORDS) == (StepDone() if trouble is None else StepFailed())
    assert await tidied(Step.RELEASE) == (StepDone() if trouble is None else StepFailed())
    assert worker.has_released("run_1") is (trouble is None)


async def test_a_run_whose_processes_could_not_be_stopped_does_not_count_as_freed(worker: Worker) -> None:
    work = Work(AGENT, failures=1)
    assert await worker._tidied(work, Step.RELEASE, cast("Any", Steps(None))) == StepDone()
    assert not worker.has_released("run_1")


async def test_a_bug_while_tidying_is_not_hidden_but_for_the_last_try(worker: Worker) -> None:
    bug, work = cast("Any", Steps(ValueError("a bug"))), Work(ROW)
    assert await worker._tidied(work, Step.TRY_TO_STOP, bug) == StepDone()
    assert work.failures == 1
    for step in (Step.STOP, Step.RELEASE, Step.LAST_WORDS):
        with pytest.raises(ValueError, match="a bug"):
            await worker._tidied(work, step, bug)


def at_work(worker: Worker, run: str, *, phase: Phase = Phase.FOLLOWING, row: Run = AGENT) -> Work:
    work = Work(changed(row, id=run), job=changed(Job(), phase=phase))
    worker._works[run] = work
    return work


async def test_leases_are_renewed_once_in_a_while_and_only_where_something_is_held(
    worker: Worker, store: Store, fake_clock: FakeClock
) -> None:
    store.news = module._News({}, {})
    await worker.tick()
    assert store.asked == []
    at_work(worker, "run_1")
    renewed = lambda: [one for one in store.asked if one[0] is review.renew]  # noqa: E731
    counts = []
    for by in (timedelta(0), RENEW_EVERY, RENEW_EVERY - timedelta(seconds=1), timedelta(seconds=1)):
        fake_clock.advance(by)
        await worker.tick()
        counts.append(len(renewed()))
    assert counts == [0, 1, 1, 2]
    assert renewed()[0] == (review.renew, {"run_1": 3}, "own_1", NOW + RENEW_EVERY)


async def test_each_job_is_told_once_what_became_of_its_run(worker: Worker, store: Store) -> None:
    followed, starting = at_work(worker, "a"), at_work(worker, "b", phase=Phase.STARTING)
    command, over = at_work(worker, "c", row=ROW), at_work(worker, "d", phase=Phase.FINISHING)
    told, person = at_work(worker, "e"), at_work(worker, "f")
    told.tell(Claimed())
    store.news = module._News(
        {"b": RunEnded(), "d": RunEnded(), "e": TakenOver(), "gone": TakenOver()},
        {"a": False, "b": True, "c": True, "f": True},
    )
    await worker.tick()
    ((_, held, asked, owner),) = store.asked
    assert (set(held), set(asked), owner) == (set("abcdef"), {"a", "f"}, "own_1")
    assert [list(one.inbox) for one in (followed, starting, command, over, told, person)] == [
        [Claimed()], [RunEnded()], [], [], [Claimed()], [TakenByPerson()],
    ]  # fmt: skip


async def test_slots_are_freed_once_however_a_job_ended_and_newer_work_keeps_its_entry(worker: Worker) -> None:
    made: list[int] = []
    worker.room_made = lambda: made.append(1)
    old, new = at_work(worker, "run_1"), Work(ROW)
    worker._room.busy = worker._room.held = 2
    worker._over(old)
    worker._over(old)
    assert (worker._room.busy, worker._room.held, len(made)) == (1, 2, 1)
    worker._works["run_1"] = new
    worker._done_with(old)
    assert (worker._room.busy, worker._room.held, worker.holds("run_1")) == (1, 1, True)
    worker._done_with(new)
    assert (worker._room.busy, worker._room.held, worker.holds("run_1")) == (0, 0, False)
