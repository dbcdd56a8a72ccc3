"""Fires triggers whose gate is open: due ones are found by index, events by type; it wakes exactly when one is due."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.daemon.active_config import ActiveConfig, ClockGuard, check_skew
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.daemon.ticks import Waker
from lamplighter.domain.events import TOPIC as EVENTS
from lamplighter.kit import log
from lamplighter.kit.clock import Clock, Reading, set_back_by
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.services import clock_back, retention
from lamplighter.services.automations import due
from lamplighter.services.automations.registering import TOPIC as AUTOMATIONS
from lamplighter.services.context import Context, acting
from lamplighter.store.tx import Store

ACTOR = "controller"
AT_ONCE = 50
QUIET_AT_ONCE = 100
POLL = timedelta(seconds=30)
ROUNDS = 100
LOCKED_ELSEWHERE = timedelta(seconds=1)


@dataclass
class Scheduler:
    """One tick shows new events to the triggers that listen and fires the due ones; an idle tick is one small read."""

    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    guard: ClockGuard
    worker: Worker
    """Starts as many of the fired runs as it has slots for, in the transaction that fires them."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    position: int | None = None
    """The seq of the last event whose type was shown to triggers."""
    _read: Reading | None = None
    """The wall clock and the monotonic clock at the last tick."""
    _next: datetime | None = None
    _stuck: bool = False

    def listen(self, waker: Waker) -> None:
        waker.watch((EVENTS, AUTOMATIONS), self.wake.set, self)

    async def loop(self) -> None:
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    def until_next(self) -> timedelta:
        if self._next is None:
            return POLL
        left = self._next - self.clock.now()
        if self._stuck:
            left = max(left, LOCKED_ELSEWHERE)
        return min(max(left, timedelta(0)), POLL)

    async def tick(self) -> list[str]:
        """Fire what is due, in a bounded number of rounds; returns the runs. Raises ClockSkewed before it fires any."""
        await self.guard.check()
        await self._notice_clock_set_back()
        if self.position is None:
            self.position = await self.store.read(due.scanned_to)
        fired: list[str] = []
        self._stuck = False
        for _ in range(ROUNDS):  # what is left is due at once, so the next tick follows without a pause
            seen = await self.store.read(due.peek, self.position)
            self._next = seen.next_due_at
            if seen.unseen:
                self.position = await self.store.transact(due.scan_events, self.position, self.clock.now())
            elif self._next is None or self._next > self.clock.now():
                return fired
            report = await self._fire()
            fired += report.fired
            if not report.looked_at and not seen.unseen:
                self._stuck = True  # another process holds what is due
                return fired
        return fired

    async def _notice_clock_set_back(self) -> None:
        """Adjust stored times after the wall clock was set back. Raises ClockSkewed if only this machine's clock was.

        Between ticks it compares wall and monotonic clock; at the first tick it looks for recorded times ahead of now.
        """
        read = Reading(self.clock.now(), self.clock.monotonic())
        by = await self.store.read(clock_back.ahead, read.now) if self._read is None else set_back_by(self._read, read)
        if by is not None:
            await check_skew(self.store)  # if the database's clock was not set back, this machine's is wrong
            ctx = acting(ACTOR, read.now, self.ids)
            await self.store.transact(clock_back.mend, by, rules=self.active.rules, ctx=ctx)
            log.get().warning("clock.set_back", by_s=round(by.total_seconds(), 3))
        self._read = read

    async def _fire(self) -> due.PassReport:
        ctx = acting(ACTOR, self.clock.now(), self.ids)
        with self.worker.start_grant(AT_ONCE) as start_grant:
            try:
                report = await self.store.transact(
                    due.fire_due, limit=AT_ONCE, rules=self.active.rules, ctx=ctx, start_grant=start_grant
                )
            except LampError:
                raise
            except Exception as error:  # noqa: BLE001  a bug about one trigger must not silence all the others
                log.get().error("scheduler.batch_failed", exc_info=error)
                report = await self._fire_one_by_one(ctx)
            if report.fired:
                crash_point(CrashPoint.FIRE_AFTER_COMMIT)
            self.worker.begin_all(report.started)
        return report

    async def _fire_one_by_one(self, ctx: Context) -> due.PassReport:
        report = due.PassReport()
        for key in await self.store.transact(due.due_keys, ctx.now, limit=AT_ONCE):
            try:
                one = await self.store.transact(due.fire_alone, key, rules=self.active.rules, ctx=ctx)
            except LampError:
                raise
            except Exception as error:  # noqa: BLE001  as above; it is reported and tried again later
                log.get().error("scheduler.trigger_failed", automation=key[0], trigger=key[1], exc_info=error)
                await self.store.transact(due.put_aside, key, f"{type(error).__name__}: {error}", ctx=ctx)
                continue
            report.looked_at += 1
            report.fired += one.fired
        return report

    async def raise_quiet(self) -> None:
        ctx = acting(ACTOR, self.clock.now(), self.ids)
        raised = await self.store.transact(due.raise_quiet, limit=QUIET_AT_ONCE, rules=self.active.rules, ctx=ctx)
        for name in raised:
            log.get().warning("automation.quiet", automation=name)

    async def spared(self) -> int:
        """The seq above which some trigger still has to read events.

        Stores the scan position first: a restart scans from there, so the answer still holds after it.
        """
        position = self.position or 0
        if position:
            await self.store.transact(lambda tx: tx.cities.scanned(position))
        return await self.store.read(retention.unread_events)
