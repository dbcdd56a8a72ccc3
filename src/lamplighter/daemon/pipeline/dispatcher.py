"""Works off the outbox: recovers and claims items and handles them in parallel; woken by new items and due times."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.daemon.active_config import ClockGuard, Tasks
from lamplighter.daemon.pipeline.handlers import Handlers
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.daemon.ticks import Waker
from lamplighter.domain.delivery.outbox import Item
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.loop import every
from lamplighter.services import outbox
from lamplighter.services.context import acting
from lamplighter.services.runs import claiming, review
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.outbox import LATER
from lamplighter.store.outbox import TOPIC as OUTBOX
from lamplighter.store.tx import Store

CLAIM_AT_ONCE = 50
HANDLE_AT_ONCE = 64
POLL = timedelta(seconds=10)
HELD_BACK = timedelta(seconds=1)
SOON = timedelta(seconds=2)
HUNG_EVERY = timedelta(seconds=60)


@dataclass
class Dispatcher:
    """`only` restricts it to the items of one run: for a command that carries out its own run and nothing else."""

    store: Store
    clock: Clock
    ids: IdSource
    worker: Worker
    handlers: Handlers
    guard: ClockGuard
    only: str | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    handling: Tasks = field(default_factory=Tasks)
    _items: "dict[asyncio.Task[bool], Item]" = field(default_factory=dict)
    """The items being handled. One that was lost and claimed again is handled twice for a while: so by task."""
    _next: datetime | None = None
    _idle: bool = True
    _full: bool = False
    """The last pass left due items unclaimed because no slot was free."""
    _added: bool = False
    """An item was added since the last tick: it is probably due, so the next tick claims without looking first."""
    _waits: bool = False
    """An item that is due a little later was added during a tick, which may not have seen it."""
    _taken: bool = True
    """Leases were voided, as after a process died: there may be runs to adopt."""
    _adopted: float | None = None
    _hung_looked: float | None = None
    _loop: "asyncio.Task[None] | None" = None

    def listen(self, waker: Waker) -> None:
        waker.watch((OUTBOX,), self._item_added, self)
        waker.watch((LATER,), self._item_waits, self)
        waker.watch((review.TAKEN,), self._somebody_died, self)

    async def loop(self) -> None:
        self._loop = asyncio.current_task()
        self.worker.room_made = self._room_made
        self.worker.doubted = self.wake.set
        # The tick adopts runs of a dead process before `clear` removes what it left behind, which takes longer.
        await self._tidied(self.worker.sweep())
        await self.tick()
        await self._tidied(self.worker.clear())
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    async def _tidied(self, tidying: Awaitable[None]) -> None:
        """Log a failed tidying, so that work goes on; it is tried again at the next start. Raises StoreUnavailable."""
        try:
            await tidying
        except StoreUnavailable:
            raise
        except (LampError, OSError) as error:
            log.get().warning("commands.not_tidied", error=str(error))

    def until_next(self) -> timedelta:
        """The time until the next item is due, at most POLL.

        If the last pass claimed nothing, due items are held back by another process or a lack of slots: then it is at
        least HELD_BACK.
        """
        if self._next is None:
            return POLL
        left = self._next - self.clock.now()
        return min(max(left, HELD_BACK if self._idle else timedelta(0)), POLL)

    async def tick(self) -> int:
        """Claim the due items and start handling them; returns how many. Raises ClockSkewed before taking any work."""
        await self.guard.check()
        try:
            return await self._pass()
        except StoreUnavailable:
            self.worker.doubt()
            raise

    async def _pass(self) -> int:
        if await self.worker.give_back(self._items.values()):
            self._taken = True
        await self._take_back_hung()
        await self._adopt()
        reach = self.worker.active.reach
        added, self._added, self._waits = self._added, False, False
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
            if not len(taken):  # another process was faster
                break
        self._idle = claimed == 0
        by = self.clock.now() + SOON
        if self._waits and (self._next is None or self._next > by):
            self._next = by
        return claimed

    async def drain(self) -> None:
        """Work until nothing is due or under way: for a process that ends when its work is done."""
        while await self.tick() or self.handling.running or self.worker.tasks.running:
            await self.handling.all_done()
            running = set(self.worker.tasks.running)
            if running:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Claim nothing more, let the handlers under way finish, then end the runs under way."""
        if self._loop is not None:
            self._loop.cancel()
        await self.handlers.stop()
        await self.handling.all_done()
        await self.worker.stop()
        with suppress(LampError, OSError):  # in case the first tidying was cut short; else the next start does it
            await self.worker.tidy()

    @property
    def _room(self) -> int:
        return min(CLAIM_AT_ONCE, self.worker.room - len(self.handling.running), HANDLE_AT_ONCE)

    async def _claim(self, room: int) -> review.Taken:
        me, reach = self.worker.me, self.worker.active.reach
        bounded = self.worker.active.bounds_commands
        ctx = acting(me.actor, self.clock.now(), self.ids)
        taken = await self.store.transact(
            claiming.take_due, me, limit=room, run=self.only, reach=reach, bounded=bounded,
            released=self.worker.released, ctx=ctx,
        )  # fmt: skip
        crash_point(CrashPoint.ITEM_AFTER_CLAIM)
        if taken.enriched:
            crash_point(CrashPoint.RUN_AFTER_ENRICHED)
        return taken

    async def _adopt(self) -> None:
        """Adopt orphaned runs at once after a wake-up, else every POLL; a command works on its own run only."""
        now = self.clock.monotonic()
        if self.only is not None:
            return
        if self._taken or self._adopted is None or now - self._adopted >= POLL.total_seconds():
            self._taken, self._adopted = False, now
            await self.worker.adopt()

    def _item_added(self) -> None:
        self._added = True
        self.wake.set()

    def _item_waits(self) -> None:
        """Look when it is due, unless something is due before that anyway."""
        self._waits = True
        if self._next is None or self._next - self.clock.now() > SOON:
            self.wake.set()

    def _somebody_died(self) -> None:
        self._taken = True
        self.wake.set()

    def _room_made(self) -> None:
        if self._full:
            self.wake.set()

    def _hand_over(self, item: Item) -> None:
        task = asyncio.create_task(self.handlers.handle(item), name=f"{item.kind} {item.id}")
        self._items[task] = item
        self.handling.add(task)
        task.add_done_callback(self._handled)

    def _handled(self, task: "asyncio.Task[bool]") -> None:
        del self._items[task]  # before the doubt, which spares what is being handled
        if not task.cancelled() and task.exception() is None and not task.result():
            self.worker.doubt()
        self._room_made()

    async def _take_back_hung(self) -> None:
        now = self.clock.monotonic()
        if self._hung_looked is not None and now - self._hung_looked < HUNG_EVERY.total_seconds():
            return
        self._hung_looked = now
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        count = await self.store.transact(outbox.take_back_hung, ctx=ctx)
        if count:
            log.get().warning("outbox.items_taken_back", count=count)
