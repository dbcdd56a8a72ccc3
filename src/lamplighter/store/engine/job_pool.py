"""Jobs for several threads: the one that rested last takes the next, and whoever is free takes all that wait.

A queue of the usual kind wakes the thread that has rested longest. With one caller every job would then meet another
connection, whose server process and prepared statements have gone cold.

Jobs that can be done together by one function are two threads' at a time: while one waits for the server the other
prepares, and more of them would only have less to do in one go.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from lamplighter.store.engine.jobs import Job

Many = Callable[..., Any]
AT_ONE_FUNCTION = 2


class JobPool:
    """Threads call `take` and, when done with it, `done`; anybody calls `put`. After `close` the rest is given out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: deque[Job] = deque()
        self._batched: dict[Many, deque[Job]] = {}
        self._in_hand: dict[int, Many] = {}
        """The function whose jobs a thread has in hand."""
        self._resting: list[threading.Event] = []
        self._coming = 0
        """Threads that were called and have not come yet. Who comes takes what it can and calls another for more."""
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
        """All that waits, up to `most`; rests until there is something. Empty once closed and done."""
        while True:
            with self._lock:
                taken = self._taken(most)
                if taken:
                    if not self._coming and self._left():
                        self._call_one()
                    return taken
                if self._closed:  # batched jobs that are left are taken by the threads that have such in hand
                    return []
                called = threading.Event()
                self._resting.append(called)
            called.wait()
            with self._lock:
                self._coming -= 1

    def done(self) -> None:
        """What this thread took is answered, or nobody need wait for it; who came meanwhile is served by another."""
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
