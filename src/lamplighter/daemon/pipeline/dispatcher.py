"""The outbox at work: recover, claim a batch, handle side by side; woken by new items and by the next due time."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.daemon.active_config import ClockGuard, Tasks
from lamplighter.daemon.pipeline.handlers import Handlers
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.daemon.ticks import Waker
from lamplighter.domain.acts import Act
from lamplighter.domain.delivery.outbox import Item
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.services import outbox
from lamplighter.services.runs import review
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.outbox import TOPIC as OUTBOX
from lamplighter.store.tx import Store

CLAIM_AT_ONCE = 50
HANDLE_AT_ONCE = 64
POLL = timedelta(seconds=10)
HELD_BACK = timedelta(seconds=1)
HUNG_EVERY = timedelta(seconds=60)


@dataclass
class Dispatcher:
    """`only` restricts it to one run's items: a command that works its own run and leaves the rest alone."""

    store: Store
    clock: Clock
    ids: IdSource
    worker: Worker
    handlers: Handlers
    guard: ClockGuard
    only: str | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    handling: Tasks = field(default_factory=Tasks)
    _next: datetime | None = None
    _idle: bool = True
    _full: bool = False
    """The last pass left work undone for want of room."""
    _added: bool = False
    """An item was added: it is likely due, and need not be looked for first."""
    _taken: bool = True
    """A process died: what it left running may be ours to adopt."""
    _adopted: float | None = None
    _hung_looked: float | None = None
    _loop: "asyncio.Task[None] | None" = None

    def listen(self, waker: Waker) -> None:
        waker.watch((OUTBOX,), self._item_added, self)
        waker.watch((review.TAKEN,), self._somebody_died, self)

    async def loop(self) -> None:
        self._loop = asyncio.current_task()
        self.worker.room_made = self._room_made
        # What a dead process had under way is taken up before its litter is cleared, which takes longer.
        await self._tidied(self.worker.sweep())
        await self.tick()
        await self._tidied(self.worker.clear())
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    async def _tidied(self, tidying: Awaitable[None]) -> None:
        """A directory in disorder keeps nobody from working; what is left is tidied at the next start."""
        try:
            await tidying
        except StoreUnavailable:
            raise
        except (LampError, OSError) as error:
            log.get().warning("commands.not_tidied", error=str(error))

    def until_next(self) -> timedelta:
        """Nothing was claimed though something is due: held back by a pause, by another process or for want of room."""
        if self._next is None:
            return POLL
        left = self._next - self.clock.now()
        return min(max(left, HELD_BACK if self._idle else timedelta(0)), POLL)

    async def tick(self) -> int:
        """Claim what is due and hand it over; returns how many items. Raises ClockSkewed instead of taking work."""
        await self.guard.check()
        await self._take_back_hung()
        await self._adopt()
        reach = self.worker.active.reach
        added, self._added = self._added, False
        self._next = self.clock.now() if added else await self.store.read(outbox.next_due_at, reach=reach)
        claimed = 0
        while self._next is not None and self._next <= self.clock.now():
            room = self._room
            self._full = room <= 0
            if self._full:
                break
            taken = await self._claim(room)
            self.worker.begin_all(taken.started)
            for item in taken.items:
                self._hand_over(item)
            claimed += len(taken)
            self._next = taken.next_due_at
            if not len(taken):  # held back by a pause, or another process was faster
                break
        self._idle = claimed == 0
        return claimed

    async def drain(self) -> None:
        """Work until nothing is due and nothing is under way: for a process that does its part and leaves."""
        while await self.tick() or self.handling.running or self.worker.tasks.running:
            await self.handling.all_done()
            running = set(self.worker.tasks.running)
            if running:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Claim nothing more, let what is being handed over arrive, then end what runs."""
        if self._loop is not None:
            self._loop.cancel()
        await self.handling.all_done()
        await self.worker.stop()
        with suppress(LampError, OSError):  # for a first tidying that was cut short; else the next start does it
            await self.worker.tidy()

    @property
    def _room(self) -> int:
        return min(CLAIM_AT_ONCE, self.worker.room - len(self.handling.running), HANDLE_AT_ONCE)

    async def _claim(self, room: int) -> review.Taken:
        me, reach = self.worker.me, self.worker.active.reach
        taken = await self.store.transact(review.take_due, me, self.clock.now(), limit=room, run=self.only, reach=reach)
        crash_point(CrashPoint.ITEM_AFTER_CLAIM)
        return taken

    async def _adopt(self) -> None:
        """At once after a death, and now and then all the same; a command works on its own run only."""
        now = self.clock.monotonic()
        if self.only is not None:
            return
        if self._taken or self._adopted is None or now - self._adopted >= POLL.total_seconds():
            self._taken, self._adopted = False, now
            await self.worker.adopt()

    def _item_added(self) -> None:
        self._added = True
        self.wake.set()

    def _somebody_died(self) -> None:
        self._taken = True
        self.wake.set()

    def _room_made(self) -> None:
        if self._full:
            self.wake.set()

    def _hand_over(self, item: Item) -> None:
        task = asyncio.create_task(self.handlers.handle(item), name=f"{item.kind} {item.id}")
        self.handling.add(task)
        task.add_done_callback(lambda _task: self._room_made())

    async def _take_back_hung(self) -> None:
        now = self.clock.monotonic()
        if self._hung_looked is not None and now - self._hung_looked < HUNG_EVERY.total_seconds():
            return
        self._hung_looked = now
        act = Act(self.worker.me.actor, self.clock.now())
        count = await self.store.transact(outbox.take_back_hung, ids=self.ids, act=act)
        if count:
            log.get().warning("outbox.items_taken_back", count=count)
