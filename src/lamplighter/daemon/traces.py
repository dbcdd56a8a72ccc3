"""The loop that reports ended runs as spans; one for a city. Nothing else waits for it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.daemon.ticks import Waker
from lamplighter.domain.city.model import City
from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.domain.runs import tracing
from lamplighter.domain.runs.spans import Recorded, Span, spans_of
from lamplighter.kit import log
from lamplighter.kit.backoff import doubling
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import Fenced, LampError
from lamplighter.kit.loop import every
from lamplighter.ports.traces import SpanSink, SpansRefused
from lamplighter.services import traces
from lamplighter.store.tx import Store

LATEST = timedelta(seconds=30)
"""The loop looks at least so often; a wake-up makes it sooner."""
PACE = timedelta(seconds=1)
"""The least time between two looks, so that many short runs are sent together."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
BATCHES_A_TICK = 20


@dataclass
class Traces:
    store: Store
    clock: Clock
    sink: SpanSink
    city: Callable[[], City]
    problem: str | None = None
    """Why spans are not taken now."""
    hint: str = ""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0
    _not_before: float = 0.0
    _waits: bool = False
    """Whether something is to be reported soon, though no event comes."""

    def listen(self, waker: Waker) -> None:
        waker.watch((EVENTS,), self.wake.set, self)

    async def loop(self) -> None:
        await every(lambda: PACE if self._waits else LATEST, self._tick_and_rest, clock=self.clock, wake=self.wake)

    async def _tick_and_rest(self) -> None:
        """At most once in PACE; after a failure in growing pauses, whatever comes."""
        await self.tick()
        pause = max(PACE.total_seconds(), self._not_before - self.clock.monotonic())
        await self.clock.wait(asyncio.Event(), at_most=timedelta(seconds=pause))

    async def tick(self) -> int:
        """Report what has ended; returns how many runs."""
        if self.clock.monotonic() < self._not_before:
            return 0
        count = 0
        try:
            for _ in range(BATCHES_A_TICK):
                city = self.city()
                found = await self.store.read(
                    traces.next_ended, now=self.clock.now(), public_url=city.api.public_url, city=city.name
                )
                self._waits = found.waits
                await self._send(found.runs)
                if not found.moves:
                    break
                await self.store.transact(traces.reported, found)
                count += len(found.runs)
                if found.missed:
                    log.get().warning("traces.too_old", runs=found.missed)
            else:
                self._waits = True  # there may be more
        except Fenced:
            raise
        except LampError as error:
            self._failed(error)
        else:
            self._works()
        return count

    async def _send(self, runs: list[Recorded]) -> None:
        """Raises Unavailable. A run whose spans are refused is left out: the others are sent without it."""
        if not runs:
            return
        try:
            await self.sink.send([span for run in runs for span in _spans(run)])
            crash_point(CrashPoint.TRACES_AFTER_SEND)
        except SpansRefused as error:
            if len(runs) == 1:
                log.get().warning("traces.refused", run=runs[0].run.id, error=error.message)
                return
            for run in runs:
                await self._send([run])

    def _failed(self, error: LampError) -> None:
        if self.problem != error.message:
            log.get().warning("traces.failed", error=error.message, hint=error.hint)
        self.problem, self.hint = error.message, error.hint
        pause = doubling(self._failures, first=FIRST_PAUSE, most=LONGEST_PAUSE)
        self._failures += 1
        self._not_before = self.clock.monotonic() + pause.total_seconds()

    def _works(self) -> None:
        if self.problem is not None:
            log.get().info("traces.works", address=self.sink.address)
        self.problem, self.hint, self._failures, self._not_before = None, "", 0, 0.0


def _spans(run: Recorded) -> list[Span]:
    try:
        return spans_of(run)
    except Exception as error:  # noqa: BLE001  one run's record must not keep the others from being reported
        log.get().error("traces.not_made", run=run.run.id, exc_info=error)
        return []


@dataclass(frozen=True)
class Handing:
    """Hands programs their own run's span, where its spans are to be reported; else that of whoever set it off."""

    sink: SpanSink

    def __call__(self, run: str, trigger: Mapping[str, Any]) -> dict[str, str]:
        sender = tracing.sender_of(trigger)
        own = tracing.context_of(run, sender)
        if self.sink.samples(own, sender, f"RUN {trigger.get('automation', '')}"):
            return {tracing.VARIABLE: str(own)}
        return tracing.variables(trigger) or {tracing.VARIABLE: str(tracing.unsampled(own))}
