"""Threads that share jobs: batched ones are one thread's at a time, none is forgotten, and all leave at the end."""

import asyncio
import threading
from typing import Any

import pytest

from lamplighter.store.batch import batched
from lamplighter.store.crew import Crew
from lamplighter.store.jobs import Answer, Job

LIMIT = 10.0


@batched(lambda _tx, calls: [None for _ in calls])
def together(_tx: Any) -> None: ...


def plain(_tx: Any) -> None: ...


@pytest.fixture
def loop() -> Any:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def job(fn: Any, loop: asyncio.AbstractEventLoop) -> Job:
    return Job(fn, (), {}, Answer(loop=loop))


class Taker(threading.Thread):
    """Takes once, and says what it got."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(daemon=True)
        self.crew = crew
        self.got: list[Job] | None = None
        self.start()

    def run(self) -> None:
        self.got = self.crew.take(64)

    def result(self) -> list[Job]:
        self.join(LIMIT)
        assert self.got is not None, "it rests for ever"
        return self.got


def resting(crew: Crew, count: int) -> None:
    done = threading.Event()
    for _ in range(1000):
        if len(crew._resting) == count:
            return
        done.wait(0.005)
    raise AssertionError("nobody rests")


def test_batched_jobs_that_came_meanwhile_go_to_another_as_soon_as_they_may(loop: asyncio.AbstractEventLoop) -> None:
    crew = Crew()
    crew.put(job(together, loop))
    assert len(crew.take(64)) == 1
    other = Taker(crew)
    resting(crew, 1)
    late = job(together, loop)
    crew.put(late)
    assert other.got is None
    crew.done()  # this thread goes on with what waits for somebody's lock, and takes nothing now
    assert other.result() == [late]


def test_plain_jobs_pass_by_a_batch_in_hand(loop: asyncio.AbstractEventLoop) -> None:
    crew = Crew()
    crew.put(job(together, loop))
    crew.take(64)
    other = Taker(crew)
    resting(crew, 1)
    aside = job(plain, loop)
    crew.put(aside)
    assert other.result() == [aside]


def test_at_the_end_those_who_rest_leave_and_the_one_with_a_batch_takes_the_rest(
    loop: asyncio.AbstractEventLoop,
) -> None:
    crew = Crew()
    crew.put(job(together, loop))
    crew.take(64)
    other = Taker(crew)
    resting(crew, 1)
    left = job(together, loop)
    crew.put(left)
    crew.close()
    assert other.result() == []
    crew.done()
    assert crew.take(64) == [left]
    crew.done()
    assert crew.take(64) == []
