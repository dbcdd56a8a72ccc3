"""Jobs for several threads: the thread that became idle last is woken first, and takes all jobs that wait.

An ordinary queue wakes the thread that has been idle longest. With a single caller, every job would then use another
connection, whose server process and prepared statements have gone cold.

At most two threads at a time work on jobs that one function can do together: while one waits for the server the other
prepares, and more threads would only make the batches smaller.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from lamplighter.store.engine.jobs import Job

Many = Callable[..., Any]
AT_ONE_FUNCTION = 2


class JobPool:
    """Worker threads call `take`, then `done`; any thread calls `put`. After `close`, waiting jobs are still taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: deque[Job] = deque()
        self._batched: dict[Many, deque[Job]] = {}
        self._in_hand: dict[int, Many] = {}
        """By thread id, the function whose batched jobs the thread works on."""
        self._resting: list[threading.Event] = []
        self._coming = 0
        """Threads that were woken and do not run yet. Each takes what it can, and wakes another if more is left."""
        self._closed = False

    def put(self, job: Job) -> None:
        many = job.many
        with self._lock:
            if many is None:
                self._plain.append(job)
                self._call_one()
                return
            self._batched.setdefault(many, deque()).append(job)
            if not self._coming and self._may_take(many):
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
                if self._closed:  # remaining batched jobs are taken by the threads that work on their function
                    return []
                called = threading.Event()
                self._resting.append(called)
            called.wait()
            with self._lock:
                self._coming -= 1

    def done(self) -> None:
        """Call when the jobs taken are answered or need not hold up others: wakes a thread for those put meanwhile."""
        with self._lock:
            many = self._in_hand.pop(threading.get_ident(), None)
            if many is not None and self._batched.get(many) and not self._coming:
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

    def _may_take(self, many: Many) -> bool:
        return list(self._in_hand.values()).count(many) < AT_ONE_FUNCTION

    def _left(self) -> bool:
        """Whether something waits that another thread may take now."""
        return bool(self._plain) or self._free() is not None

    def _free(self) -> Many | None:
        return next((many for many, jobs in self._batched.items() if jobs and self._may_take(many)), None)

    def _taken(self, most: int) -> list[Job]:
        taken: list[Job] = []
        free = self._free()
        if free is not None:
            self._in_hand[threading.get_ident()] = free
            taken += _off(self._batched[free], most)
        return taken + _off(self._plain, most - len(taken))


def _off(jobs: deque[Job], most: int) -> list[Job]:
    return [jobs.popleft() for _ in range(min(most, len(jobs)))]
