"""Threads that share jobs: one function's are two threads' at a time, none is forgotten, and all leave at the end."""

import asyncio
import threading
from typing import Any

import pytest

from lamplighter.store.engine.batching import batched
from lamplighter.store.engine.job_pool import AT_ONE_BATCH, JobPool
from lamplighter.store.engine.jobs import Answer, Job

LIMIT = 120.0


@batched(lambda: None, lambda _tx, asked: [None for _ in asked])
def together(_tx: Any) -> None: ...


@batched(lambda: None, lambda _tx, asked: [None for _ in asked])
def elsewise(_tx: Any) -> None: ...


def plain(_tx: Any) -> None: ...


@pytest.fixture
def loop() -> Any:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def job(fn: Any, loop: asyncio.AbstractEventLoop, city: str = "cty_1") -> Job:
    return Job(city, fn, (), {}, Answer(loop=loop))


class Taker(threading.Thread):
    """Takes once and says what it got; `finish` lets it say that it is done."""

    def __init__(self, job_pool: JobPool) -> None:
        super().__init__(daemon=True)
        self.job_pool = job_pool
        self.got: list[Job] = []
        self.took = threading.Event()
        self.finish = threading.Event()
        self.start()

    def run(self) -> None:
        self.got = self.job_pool.take(64)
        self.took.set()
        self.finish.wait(LIMIT)
        self.job_pool.done()

    def result(self) -> list[Job]:
        assert self.took.wait(LIMIT), "it rests for ever"
        return self.got


def resting(job_pool: JobPool, count: int) -> None:
    pause = threading.Event()
    for _ in range(1000):
        if len(job_pool._resting) == count:
            return
        pause.wait(0.005)
    raise AssertionError("nobody rests")


def at_work(job_pool: JobPool, loop: asyncio.AbstractEventLoop) -> list[Taker]:
    """As many threads as may have one function's jobs in hand."""
    takers = []
    for _ in range(AT_ONE_BATCH):
        job_pool.put(job(together, loop))
        takers.append(Taker(job_pool))
        assert len(takers[-1].result()) == 1
    return takers


def test_no_more_than_two_threads_have_one_functions_jobs_and_who_waits_is_called(
    loop: asyncio.AbstractEventLoop,
) -> None:
    job_pool = JobPool()
    takers = at_work(job_pool, loop)
    other = Taker(job_pool)
    resting(job_pool, 1)
    late = job(together, loop)
    job_pool.put(late)
    assert not other.took.wait(0.05)
    takers[0].finish.set()  # it goes on with what waits for somebody's lock, and takes nothing now
    assert other.result() == [late]


@pytest.mark.parametrize(
    ("fn", "city"),
    [(plain, "cty_1"), (elsewise, "cty_1"), (together, "cty_2")],
    ids=["plain", "of another function", "of another city"],
)
def test_other_jobs_pass_by_batches_in_hand(fn: Any, city: str, loop: asyncio.AbstractEventLoop) -> None:
    job_pool = JobPool()
    at_work(job_pool, loop)
    other = Taker(job_pool)
    resting(job_pool, 1)
    aside = job(fn, loop, city)
    job_pool.put(aside)
    assert other.result() == [aside]


def test_at_the_end_those_who_rest_leave_and_those_with_a_batch_take_the_rest(
    loop: asyncio.AbstractEventLoop,
) -> None:
    job_pool = JobPool()
    takers = at_work(job_pool, loop)
    other = Taker(job_pool)
    resting(job_pool, 1)
    left = job(together, loop)
    job_pool.put(left)
    job_pool.close()
    assert other.result() == []
    takers[0].finish.set()
    takers[0].join(LIMIT)
    assert job_pool.take(64) == [left]
    job_pool.done()
    assert job_pool.take(64) == []


def test_a_batch_is_of_one_function_and_one_city(loop: asyncio.AbstractEventLoop) -> None:
    job_pool = JobPool()
    jobs = [job(together, loop, city) for city in ("cty_1", "cty_2", "cty_1", "cty_2")]
    for one in jobs:
        job_pool.put(one)
    assert job_pool.take(64) == [jobs[0], jobs[2]]
    job_pool.done()
    assert job_pool.take(64) == [jobs[1], jobs[3]]
    job_pool.done()


def test_a_busy_city_does_not_keep_another_waiting(loop: asyncio.AbstractEventLoop) -> None:
    """Of a batch that is larger than what one thread takes, the rest queues up behind the other batches."""
    job_pool = JobPool()
    for _ in range(5):
        job_pool.put(job(together, loop, "busy"))
    job_pool.put(job(together, loop, "calm"))
    taken = []
    while len(taken) < 6:
        took = job_pool.take(2)
        taken += [one.city for one in took]
        job_pool.done()
    assert taken == ["busy", "busy", "calm", "busy", "busy", "busy"]
