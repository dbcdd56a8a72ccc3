"""The tick: runs all phases of the controller in order at every patrol, and a woken phase alone and at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Fenced, LampError
from lamplighter.kit.loop import every
from lamplighter.kit.records import record


class Waker(Protocol):
    def watch(self, topics: tuple[str, ...], call: Callable[[], None], token: object) -> None: ...

    def unsubscribe(self, token: object) -> None: ...


@record
class Phase:
    """One thing the controller looks after. `tick` does one bounded pass; `topics` are what wakes it."""

    name: str
    tick: Callable[[], Awaitable[object]]
    topics: tuple[str, ...] = ()
    at_most_every: timedelta = timedelta(0)
    """A floor between two passes, for phases that cost something."""


@dataclass
class Ticks:
    """Runs phases one after another. A LampError or OSError is kept in `problems` and logged, and the other phases
    still run; Fenced and bugs end the tick.
    """

    phases: list[Phase]
    clock: Clock
    patrol_interval: timedelta
    problems: dict[str, str] = field(default_factory=dict)
    last_tick_at: datetime | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _woken: set[str] = field(default_factory=set)
    _next_patrol: float = 0.0
    _last: dict[str, float] = field(default_factory=dict)
    _waker: Waker | None = None
    _swapped: bool = False

    def listen(self, waker: Waker) -> None:
        self._waker = waker
        for phase in self.phases:
            if phase.topics:
                waker.watch(phase.topics, partial(self.wake_phase, phase.name), phase)

    def swap(self, phases: list[Phase], patrol_interval: timedelta) -> None:
        """Replace the phases: a pass under way stops after its current phase, and a full pass follows."""
        if self._waker is not None:
            for phase in self.phases:
                self._waker.unsubscribe(phase)
        self.phases, self.patrol_interval = phases, patrol_interval
        for name in self.problems.keys() - {phase.name for phase in phases}:
            del self.problems[name]
        if self._waker is not None:
            self.listen(self._waker)
        self._swapped = True
        self.wake_all()

    def wake_phase(self, phase: str) -> None:
        self._woken.add(phase)
        self.wake.set()

    def wake_all(self) -> None:
        self._next_patrol = 0.0
        self.wake.set()

    async def tick(self) -> list[str]:
        """One pass: every phase when a patrol is due, else the woken ones; returns the names that ran."""
        now = self.clock.monotonic()
        woken, self._woken = self._woken, set()
        patrol = now >= self._next_patrol
        if patrol:
            self._next_patrol = now + self.patrol_interval.total_seconds()
        ran: list[str] = []
        self._swapped = False
        for phase in self.phases:
            if self._swapped:
                break
            if not patrol and phase.name not in woken:
                continue
            if now < self._floor(phase):
                self._woken |= woken & {phase.name}  # stays woken: it runs when its floor has passed
                continue
            await self._run(phase, now)
            ran.append(phase.name)
        self.last_tick_at = self.clock.now()
        return ran

    def until_next(self) -> timedelta:
        floors = [self._floor(phase) for phase in self.phases if phase.name in self._woken]
        return timedelta(seconds=max(min([self._next_patrol, *floors]) - self.clock.monotonic(), 0.0))

    async def loop(self) -> None:
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    def _floor(self, phase: Phase) -> float:
        """Before this moment the phase must not run again."""
        return self._last.get(phase.name, float("-inf")) + phase.at_most_every.total_seconds()

    async def _run(self, phase: Phase, now: float) -> None:
        self._last[phase.name] = now
        try:
            await phase.tick()
        except Fenced:
            raise
        except LampError as error:
            self._failed(phase, error.message, error.hint)
        except OSError as error:  # the machine's trouble, not a bug: no descriptors, a full disk, a file in the way
            self._failed(phase, str(error))
        else:
            self.problems.pop(phase.name, None)

    def _failed(self, phase: Phase, told: str, hint: str = "") -> None:
        if self.problems.get(phase.name) != told:
            log.get().warning("phase.failed", phase=phase.name, error=told, hint=hint)
        self.problems[phase.name] = told
