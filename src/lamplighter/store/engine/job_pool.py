"""Jobs for several threads: the thread that became idle last is woken first, and takes all jobs that wait.

An ordinary queue wakes the thread that has been idle longest. With a single caller, every job would then use another
connection, whose server process and prepared statements have gone cold.

At most two threads at a time work on jobs of one batch, which are the calls of one function for one city: while one
waits for the server the other prepares, and more threads would only make the batches smaller. Batches take turns: the
one whose first job has waited longest is next, so a busy city does not keep another waiting.
"""

import threading
from collections import deque

from lamplighter.store.engine.jobs import Batch, Job

AT_ONE_BATCH = 2


class JobPool:
    """Worker threads call `take`, then `done`; any thread calls `put`. After `close`, waiting jobs are still taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: deque[Job] = deque()
        self._batched: dict[Batch, deque[Job]] = {}
        """The batches with jobs that wait, those that have waited longest first."""
        self._in_hand: dict[int, Batch] = {}
        """By thread id, the batch that the thread works on."""
        self._resting: list[threading.Event] = []
        self._coming = 0
        """Threads that were woken and do not run yet. Each takes what it can, and wakes another if more is left."""
        self._closed = False

    def put(self, job: Job) -> None:
        batch = job.batch
        with self._lock:
            if batch is None:
                self._plain.append(job)
                self._call_one()
                return
            self._batched.setdefault(batch, deque()).append(job)
            if not self._coming and self._may_take(batch):
                self._call_one()

    def take(self, most: int) -> list[Job]:
        """All waiting jobs, up to `most`; blocks until there is one. Empty once closed, with nothing left to take."""
        while True:
            with self._lock:
                taken = self._taken(most)
                if taken:
                    if not self._coming and self._left():
                        self._call_one()
                    return taken
                if self._closed:  # remaining batched jobs are taken by the threads that work on their batch
                    return []
                called = threading.Event()
                self._resting.append(called)
            called.wait()
            with self._lock:
                self._coming -= 1

    def done(self) -> None:
        """Call when the jobs taken are answered or need not hold up others: wakes a thread for those put meanwhile."""
        with self._lock:
            batch = self._in_hand.pop(threading.get_ident(), None)
            if batch in self._batched and not self._coming:
                self._call_one()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._resting:
                self._call_one()

    def _call_one(self) -> None:
        if self._resting:
            self._coming += 1
            self._resting.pop().set()

    def _may_take(self, batch: Batch) -> bool:
        return list(self._in_hand.values()).count(batch) < AT_ONE_BATCH

    def _left(self) -> bool:
        """Whether something waits that another thread may take now."""
        return bool(self._plain) or self._free() is not None

    def _free(self) -> Batch | None:
        return next((batch for batch in self._batched if self._may_take(batch)), None)

    def _taken(self, most: int) -> list[Job]:
        taken: list[Job] = []
        free = self._free()
        if free is not None:
            self._in_hand[threading.get_ident()] = free
            waiting = self._batched.pop(free)
            taken += _off(waiting, most)
            if waiting:
                self._batched[free] = waiting  # at the end: other batches are next
        return taken + _off(self._plain, most - len(taken))


def _off(jobs: deque[Job], most: int) -> list[Job]:
    return [jobs.popleft() for _ in range(min(most, len(jobs)))]
