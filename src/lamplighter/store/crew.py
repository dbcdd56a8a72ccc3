"""Jobs for several threads: the one that rested last takes the next, and whoever is free takes all that wait.

A queue of the usual kind wakes the thread that has rested longest. With one caller every job would then meet another
connection, whose server process and prepared statements have gone cold.

Jobs that can be done together are one thread's at a time: beside it another would wait for the same rows, and by the
time it comes back there is more to do in one go.
"""

import threading
from collections import deque

from lamplighter.store.jobs import Job


class Crew:
    """Threads call `take` and, when done with it, `done`; anybody calls `put`. After `close` the rest is given out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: deque[Job] = deque()
        self._batched: deque[Job] = deque()
        self._batching: int | None = None
        """The thread that has batched jobs in hand."""
        self._resting: list[threading.Event] = []
        self._closed = False

    def put(self, job: Job) -> None:
        with self._lock:
            batched = job.many is not None
            (self._batched if batched else self._plain).append(job)
            if not batched or self._batching is None:
                self._call_one()

    def take(self, most: int) -> list[Job]:
        """All that waits, up to `most`; rests until there is something. Empty once closed and done."""
        while True:
            with self._lock:
                taken = self._taken(most)
                if taken:
                    return taken
                if self._closed:  # batched jobs that are left are taken by the thread that has such in hand
                    return []
                called = threading.Event()
                self._resting.append(called)
            called.wait()

    def done(self) -> None:
        """What this thread took is answered, or nobody need wait for it; who came meanwhile is served by another."""
        with self._lock:
            if self._batching == threading.get_ident():
                self._batching = None
                if self._batched:
                    self._call_one()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            resting, self._resting = self._resting, []
        for called in resting:
            called.set()

    def _call_one(self) -> None:
        if self._resting:
            self._resting.pop().set()

    def _taken(self, most: int) -> list[Job]:
        taken: list[Job] = []
        if self._batched and self._batching is None:
            self._batching = threading.get_ident()
            taken += _off(self._batched, most)
        return taken + _off(self._plain, most - len(taken))


def _off(jobs: deque[Job], most: int) -> list[Job]:
    return [jobs.popleft() for _ in range(min(most, len(jobs)))]
