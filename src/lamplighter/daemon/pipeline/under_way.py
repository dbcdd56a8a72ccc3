"""What is sent out of the city and may hang: each destination has places of its own, and a stop cuts it short."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

LAST_GRACE = timedelta(seconds=2)
"""How long what is under way may take when the process stops."""
LONGEST_WAIT = timedelta(minutes=1)


@dataclass
class Places:
    """What is under way to each destination, and how much was put off and has had no place since."""

    busy: Counter[str] = field(default_factory=Counter)
    put_off: Counter[str] = field(default_factory=Counter)

    def full(self, destination: str, most: int) -> timedelta | None:
        """How long an item waits that finds all places taken, longer for each that waits already; else None."""
        if self.busy[destination] < max(most, 1):
            return None
        self.put_off[destination] += 1
        return min(timedelta(seconds=1 + self.put_off[destination] // max(most, 1)), LONGEST_WAIT)

    def take(self, destination: str) -> None:
        self.busy[destination] += 1
        if self.put_off[destination] > 0:
            self.put_off[destination] -= 1

    def leave(self, destination: str) -> None:
        self.busy[destination] -= 1
        if not self.busy[destination]:
            del self.busy[destination]
            self.put_off.pop(destination, None)


@dataclass
class UnderWay:
    places: Places = field(default_factory=Places)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def must_wait(self, destination: str, most: int) -> timedelta | None:
        """How long it is to be put off; None if it can be done now."""
        wait = self.places.full(destination, most)
        return timedelta(0) if wait is None and self.stopping.is_set() else wait

    async def done(self, destination: str, work: Coroutine[Any, Any, None]) -> bool:
        """Do it in a place of the destination; False if it was cut short because the process stops."""
        self.places.take(destination)
        task = asyncio.create_task(work, name=f"to {destination}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await task
        except asyncio.CancelledError:
            if not (self.stopping.is_set() and task.cancelled()):
                raise
            return False
        finally:
            self.places.leave(destination)
        return True

    async def stop(self) -> None:
        """Let what is under way finish within LAST_GRACE; the rest is done again after the next start."""
        self.stopping.set()
        if self._tasks:
            _, left = await asyncio.wait(set(self._tasks), timeout=LAST_GRACE.total_seconds())
            for task in left:
                task.cancel()
