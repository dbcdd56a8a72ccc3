"""Counts the runs one process works on in parallel, and the slots reserved for runs being fired."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lamplighter.domain.delivery.reach import Reach
from lamplighter.kit.clock import Clock
from lamplighter.services.runs.workers import StartGrant, Worker
from lamplighter.store.errors import StoreUnavailable

P = TypeVar("P")
R = TypeVar("R")

AT_ONCE = 64
HELD = 4096
"""The most runs held at once: those at work, and those that are over and wait for their end to be recorded."""
SHARED = 16
"""The most runs a process that fires starts itself when other nodes share the city, so that they get their share."""
QUICKLY = 0.05
"""Seconds that a run may be marked as running before its command gets a place to run."""
SOON = 256
LONG = 1.0


@dataclass
class Slots:
    clock: Clock
    busy: int = 0
    """Runs whose work is not over."""
    held: int = 0
    """Busy runs, and those whose end is being recorded."""
    promised: int = 0
    """Slots reserved by transactions that are firing now and may start runs."""
    answer_lost: Callable[[], None] = lambda: None
    """Called when a transaction that fires fails for want of the database: it may have started runs all the same."""
    _pace: float = LONG
    """Moving average of how long commands take, in seconds."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def left(self) -> int:
        """How many more runs may be taken on."""
        return min(AT_ONCE - self.busy, HELD - self.held - self.promised)

    def reserve(self, worker: Worker, reach: Reach | None, most: int) -> "Reservation":
        """Reserve up to `most` slots for a transaction that fires; runs it started must begin inside the context.

        Leaving the context ends the reservation, so unused slots are free again.
        """
        at_once = SHARED if reach is not None else AT_ONCE + self._soon()
        room = min(most, at_once - self.busy - self.promised, HELD - self.held - self.promised)
        return Reservation(self, StartGrant(worker, max(room, 0), reach))

    async def run(self, work: Callable[[P], Awaitable[R]], what: P) -> R:
        """Run `work(what)` when one of the AT_ONCE places is free; callers wait in order of arrival."""
        await self._places.acquire()
        began = self.clock.monotonic()
        try:
            return await work(what)
        finally:
            self._pace += (self.clock.monotonic() - began - self._pace) / 8
            self._places.release()

    def _soon(self) -> int:
        """How many more commands can expect a place within QUICKLY at the recent pace; 0 while no place is free."""
        return 0 if self._places.locked() else min(SOON, int(AT_ONCE * QUICKLY / max(self._pace, 1e-6)))


class Reservation:
    """Reserves a start grant's slots within a context; a class, as a generator's context costs several times more."""

    __slots__ = ("_room", "_start_grant")

    def __init__(self, room: Slots, start_grant: StartGrant) -> None:
        self._room = room
        self._start_grant = start_grant

    def __enter__(self) -> StartGrant:
        self._room.promised += self._start_grant.room
        return self._start_grant

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._room.promised -= self._start_grant.room
        if isinstance(error, StoreUnavailable):
            self._room.answer_lost()
