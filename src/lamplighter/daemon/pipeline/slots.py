"""How much one process works on side by side, and how much of that is spoken for."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lamplighter.domain.delivery.reach import Reach
from lamplighter.kit.clock import Clock
from lamplighter.services.runs.workers import StartGrant, Worker

P = TypeVar("P")
R = TypeVar("R")

AT_ONCE = 64
HELD = 4096
"""Runs at work, and those that are over and wait for their end to be written down."""
SHARED = 16
"""Beside other nodes, who fires starts no more than so many himself: the others are to have their share."""
QUICKLY = 0.05
"""Seconds that a run may be called running before its command has a place to run in."""
SOON = 256
LONG = 1.0


@dataclass
class Slots:
    clock: Clock
    busy: int = 0
    """Runs whose work is not over."""
    held: int = 0
    """Those, and those whose end is being written down."""
    promised: int = 0
    """Runs that are being fired just now, and may be started by that."""
    _pace: float = LONG
    """How long commands have lasted lately, in seconds."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def left(self) -> int:
        """How many more may be taken on."""
        return min(AT_ONCE - self.busy, HELD - self.held - self.promised)

    def reserve(self, worker: Worker, reach: Reach | None, most: int) -> "Reservation":
        """For a transaction that fires: room for what it starts, to be taken within; what it leaves is free again."""
        at_once = SHARED if reach is not None else AT_ONCE + self._soon()
        room = min(most, at_once - self.busy - self.promised, HELD - self.held - self.promised)
        return Reservation(self, StartGrant(worker, max(room, 0), reach))

    async def run(self, work: Callable[[P], Awaitable[R]], what: P) -> R:
        """A command in a place among those that run: waited for, in the order of coming."""
        await self._places.acquire()
        began = self.clock.monotonic()
        try:
            return await work(what)
        finally:
            self._pace += (self.clock.monotonic() - began - self._pace) / 8
            self._places.release()

    def _soon(self) -> int:
        """How many find a place quickly, as things go: none while all are taken."""
        return 0 if self._places.locked() else min(SOON, int(AT_ONCE * QUICKLY / max(self._pace, 1e-6)))


class Reservation:
    """A class, because a generator's context costs several times as much."""

    __slots__ = ("_room", "_start_grant")

    def __init__(self, room: Slots, start_grant: StartGrant) -> None:
        self._room = room
        self._start_grant = start_grant

    def __enter__(self) -> StartGrant:
        self._room.promised += self._start_grant.room
        return self._start_grant

    def __exit__(self, *_error: object) -> None:
        self._room.promised -= self._start_grant.room
