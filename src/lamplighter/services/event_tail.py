"""One reader at the end of a city's event log, whatever the number of those who follow it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from lamplighter.domain.events import TOPIC, Event, EventFilter
from lamplighter.kit.clock import Clock
from lamplighter.kit.loop import every
from lamplighter.services.events import PAGE, POLL, head, page
from lamplighter.store.tx import Store, Tx

MOST_WAITING = 2 * PAGE
"""Events kept for one follower that is slow; one that is further behind reads the log itself until it has caught up."""


class Waker(Protocol):
    def subscribe(self, *topics: str) -> asyncio.Event: ...

    def unsubscribe(self, event: asyncio.Event) -> None: ...


@dataclass
class EventTail:
    """Reads new events once and passes them to every follower; reads nothing while there is none."""

    store: Store
    waker: Waker
    clock: Clock
    _followers: list["_Follower"] = field(default_factory=list)
    _reading: asyncio.Task[None] | None = None
    _position: int | None = None
    """Events up to here were passed on, or were there before the first follower."""

    async def follow(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        """Yield every matching event above `wanted.after`, once and in order, as it comes; ends only when it is closed.

        Raises what reading the log raises.
        """
        async with self._joined(wanted) as follower:
            while True:
                if follower.position < await follower.begins_after():
                    events, follower.position = await self.store.read(page, replace(wanted, after=follower.position))
                else:
                    events = await follower.take()
                for event in events:
                    yield event

    @asynccontextmanager
    async def _joined(self, wanted: EventFilter) -> AsyncGenerator["_Follower", None]:
        follower = _Follower(wanted, wanted.after)
        self._followers.append(follower)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="event tail")
        elif self._position is not None:
            follower.begin(self._position)
        try:
            yield follower
        finally:
            self._followers.remove(follower)
            if not self._followers:
                await self._stop()

    async def _stop(self) -> None:
        reading, self._reading, self._position = self._reading, None, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self) -> None:
        news = self.waker.subscribe(TOPIC)
        try:
            await every(lambda: POLL, self._tick, clock=self.clock, wake=news)
        except Exception as error:  # noqa: BLE001  it belongs to those who follow; the next one begins anew
            self._reading = self._position = None
            for follower in self._followers:
                follower.fail(error)
        finally:
            self.waker.unsubscribe(news)

    async def _tick(self) -> None:
        """Pass on all that is new."""
        if self._position is None:
            self._position = await self.store.read(head)
            for follower in self._followers:
                follower.begin(self._position)
        full = True
        while full:
            events = await self.store.read(_after, self._position)
            for follower in self._followers:
                follower.pass_on(events)
            self._position = events[-1].seq if events else self._position
            full = len(events) == PAGE


def _after(tx: Tx, position: int) -> list[Event]:
    return tx.events.after(position, limit=PAGE)


@dataclass(eq=False)
class _Follower:
    wanted: EventFilter
    position: int
    """It has been given every match up to here."""
    _begins_after: int | None = None
    """The tail passes on what is above this; before that the follower reads the log itself. None: not known yet."""
    _waiting: list[Event] = field(default_factory=list)
    _passed: int = 0
    """The last event that the tail has passed on, matching or not."""
    _error: Exception | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, position: int) -> None:
        self._begins_after = self._passed = position
        self._changed.set()

    def pass_on(self, events: list[Event]) -> None:
        if not events:
            return
        self._passed = events[-1].seq
        self._waiting += [event for event in events if event.seq > self.position and self.wanted.passes(event)]
        if len(self._waiting) > MOST_WAITING:
            self._waiting.clear()
            self._begins_after = self._passed
        self._changed.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._changed.set()

    async def begins_after(self) -> int:
        while self._begins_after is None:
            await self._change()
        return self._begins_after

    async def take(self) -> list[Event]:
        """What the tail has passed on since; waits for it. Empty when the follower has to read the log itself."""
        while not self._waiting and self._passed <= self.position:
            await self._change()
        if self._begins_after is not None and self.position < self._begins_after:
            return []
        taken, self._waiting = self._waiting, []
        taken = [event for event in taken if event.seq > self.position]  # some it may have read from the log itself
        self.position = max(self.position, self._passed)
        return taken

    async def _change(self) -> None:
        if self._error is not None:
            raise self._error
        self._changed.clear()
        await self._changed.wait()
        if self._error is not None:
            raise self._error
