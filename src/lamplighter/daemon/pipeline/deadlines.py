"""Ends runs that wait for a worker or a wisp at the moment of their deadline, not at the next patrol."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.daemon.ticks import Waker
from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.services.context import acting
from lamplighter.services.runs import review
from lamplighter.store.tx import Store

ACTOR = "finalizer"
LATEST = timedelta(hours=1)  # without a deadline; the finalizer's own pass is the promise, this loop is the speed
LATEST_REST = (LATEST / 2).total_seconds()  # a deadline further ahead than LATEST is found well before it
LOOKS_APART = timedelta(seconds=1)  # events come by the thousand: at most one look in this time


@dataclass
class Deadlines:
    """A new event, such as that of a firing, lets it look for an earlier deadline.

    Commands and agent runs that are running keep their deadlines themselves.
    """

    store: Store
    clock: Clock
    ids: IdSource
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _next: datetime | None = None
    _not_before: float = float("-inf")
    _asked: bool = True

    def listen(self, waker: Waker) -> None:
        waker.watch((EVENTS,), self._look, self)

    async def loop(self) -> None:
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    def until_next(self) -> timedelta:
        """Until the known deadline, or until a look that was asked for may be taken; half of LATEST without both."""
        waits = [LATEST / 2]
        if self._asked:
            waits.append(timedelta(seconds=self._not_before - self.clock.monotonic()))
        if self._next is not None:
            waits.append(self._next - self.clock.now())
        return max(min(waits), timedelta(0))

    async def tick(self) -> list[str]:
        """End what is overdue and look for the next deadline; returns the runs that were ended."""
        due = self._next is not None and self._next <= self.clock.now()
        rested = self.clock.monotonic() - self._not_before
        if not due and not (self._asked and rested >= 0) and rested < LATEST_REST:
            return []
        self._asked = False
        self._not_before = self.clock.monotonic() + LOOKS_APART.total_seconds()
        try:
            return await self._end_overdue()
        except Fenced:
            raise
        except LampError as error:
            self._next, self._asked = None, True
            log.get().warning("deadlines.unknown", error=error.message)
            return []

    async def _end_overdue(self) -> list[str]:
        self._next = await self._earliest()
        if self._next is None or self._next > self.clock.now():
            return []
        ended = await self.store.transact(review.time_out, ctx=acting(ACTOR, self.clock.now(), self.ids))
        for run in ended:
            log.get().info("runs.timed_out", run=run, reason="deadline_exceeded")
        self._next = await self._earliest()
        if self._next is not None and self._next <= self.clock.now():
            self._next, self._asked = None, True  # more than one batch, or held elsewhere: look again after a while
        return ended

    async def _earliest(self) -> datetime | None:
        before = self.clock.now() + LATEST
        return await self.store.read(lambda tx: tx.runs.next_deadline(before=before))

    def _look(self) -> None:
        self._asked = True
        self.wake.set()
