"""Notices at once that a working process died: each process watches the next one in a ring, and expires it."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.daemon.ticks import Waker
from lamplighter.domain.cluster.nodes import successor
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.loop import every
from lamplighter.services import owners
from lamplighter.services.context import acting
from lamplighter.store.engine import Proofs
from lamplighter.store.owners import TOPIC
from lamplighter.store.tx import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.engine import PostgresDeathWatch  # its driver is not installed everywhere

WATCH = timedelta(seconds=1)
UNEASY = timedelta(milliseconds=200)
UNEASY_TURNS = 10
"""How many ticks after an expiry look for stale claims: the server still commits what the dead process had sent."""


@dataclass
class PeerWatch:
    store: Store
    clock: Clock
    proofs: Proofs
    death_watch: "PostgresDeathWatch"
    me: str
    actor: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _uneasy: int = 0
    _watches: bool = False

    def listen(self, waker: Waker) -> None:
        waker.watch((TOPIC,), self.wake.set, self)

    async def loop(self) -> None:
        await every(self.until_next, self.tick, clock=self.clock, wake=self.wake)

    def until_next(self) -> timedelta:
        """Zero if there is a peer: the tick itself waits while it watches."""
        return timedelta(0) if self._watches else WATCH

    async def tick(self) -> list[str]:
        """Watch the next process in the ring for a while; returns the owners it expired.

        Raises ProofLost, StoreUnavailable.
        """
        await asyncio.to_thread(self.proofs.check, self.me)
        others = [one.id for one in await self.store.read(owners.others, self.me)]
        other = successor(self.me, others)
        self._watches = other is not None
        if other is None:
            return await self._expire(uneasy=False)
        if await asyncio.to_thread(self.proofs.living, others) != frozenset(others):
            return await self._expire(uneasy=True)  # the process that should watch the dead one does not, or not yet
        if await self._watch(other):
            return await self._expire(uneasy=True)
        if self._uneasy:
            self._uneasy -= 1
            await owners.void_stale_claims(self.store, ctx=acting(self.actor, self.clock.now()))
        return []

    async def _watch(self, other: str) -> bool:
        """Whether `other` died while watched; cut short when a process joins or leaves, since the ring changes then."""
        within = UNEASY if self._uneasy else WATCH
        waiting = asyncio.get_running_loop().run_in_executor(
            self.death_watch.thread, lambda: self.death_watch.ended(other, within=within.total_seconds())
        )
        woken = asyncio.ensure_future(self._changed())
        try:
            await asyncio.wait({waiting, woken}, return_when=asyncio.FIRST_COMPLETED)
            while not waiting.done():
                await asyncio.to_thread(self.death_watch.cut_short)
                await asyncio.wait({waiting}, timeout=UNEASY.total_seconds())
            return waiting.result()
        finally:
            woken.cancel()

    async def _changed(self) -> bool:
        return await self.wake.wait()

    async def _expire(self, *, uneasy: bool) -> list[str]:
        dead = await owners.dead_owners(self.store, self.proofs, self.me)
        buried = await owners.expire_all(self.store, dead, ctx=acting(self.actor, self.clock.now()))
        for owner in buried:
            log.get().info("owner.buried", owner=owner.id, host=owner.host, pid=owner.pid)
        self._uneasy = UNEASY_TURNS if buried or uneasy else 0
        return [owner.id for owner in buried]

    def close(self) -> None:
        self.death_watch.close()
