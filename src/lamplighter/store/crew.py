"""Jobs for several threads: the one that rested last takes the next, and whoever is free takes all that wait.

A queue of the usual kind wakes the thread that has rested longest. With one caller every job would then meet another
connection, whose server process and prepared statements have gone cold.
"""

import threading
from collections import deque

from lamplighter.store.jobs import Job


class Crew:
    """Threads call `take`; anybody calls `put`. After `close`, `take` gives what is left and then nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._resting: list[threading.Event] = []
        self._closed = False

    def put(self, job: Job) -> None:
        with self._lock:
            self._waiting.append(job)
            rested = self._resting.pop() if self._resting else None
        if rested is not None:
            rested.set()

    def take(self, most: int) -> list[Job]:
        """All that waits, up to `most`; rests until there is something. Empty once closed and done."""
        while True:
            with self._lock:
                if self._waiting:
                    return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
                if self._closed:
                    return []
                called = threading.Event()
                self._resting.append(called)
            called.wait()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            resting, self._resting = self._resting, []
        for called in resting:
            called.set()
