"""Housekeeping phases: closed wisps, retention, dead owners, the clock and file descriptors."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.daemon.active_config import check_skew
from lamplighter.kit import descriptors, log
from lamplighter.kit.clock import Clock
from lamplighter.services import events, formulas, owners, retention, rollups
from lamplighter.services.context import acting
from lamplighter.store.engine import Proofs
from lamplighter.store.tx import Store

ACTOR = "controller"
BATCHES_A_TICK = 20


@dataclass(frozen=True)
class Housekeeping:
    store: Store
    proofs: Proofs
    clock: Clock
    owner: str
    actor: str = ACTOR

    async def collect_wisps(self, ttl: timedelta) -> int:
        """Delete closed wisps older than `ttl`, in batches, so that no writer waits long."""
        before = self.clock.now() - ttl
        collected = 0
        for _ in range(BATCHES_A_TICK):
            count = await self.store.transact(formulas.collect, closed_before=before)
            collected += count
            if count < formulas.COLLECT_AT_ONCE:
                break
        if collected:
            log.get().info("wisps.collected", count=collected)
        return collected

    async def prune_events(self, keep: timedelta, *, spared_after: int) -> int:
        before = self.clock.now() - keep
        pruned = 0
        for _ in range(BATCHES_A_TICK):
            count = await self.store.transact(events.prune, before=before, spared_after=spared_after)
            pruned += count
            if count < events.PRUNE_AT_ONCE:
                break
        if pruned:
            log.get().info("events.pruned", count=pruned)
        return pruned

    async def prune(self, what: str, keep: timedelta, batch: Callable[..., int]) -> int:
        """Delete records older than `keep`, in batches, so that no writer waits long."""
        before = self.clock.now() - keep
        pruned = 0
        for _ in range(BATCHES_A_TICK):
            count = await self.store.transact(batch, before=before)
            pruned += count
            if count < retention.AT_ONCE:
                break
        if pruned:
            log.get().info(f"{what}.pruned", count=pruned)
        return pruned

    async def roll_up(self) -> int:
        """Count runs that have ended; returns how many events were read for it."""
        found = 0
        for _ in range(BATCHES_A_TICK):
            count = await self.store.transact(rollups.follow, now=self.clock.now())
            found += count
            if count < rollups.AT_ONCE:
                break
        return found

    async def expire_dead(self) -> int:
        """Expire owners whose process is dead; returns how many.

        Raises ProofLost when other processes may take this one for dead: it must not go on under its name.
        """
        await asyncio.to_thread(self.proofs.check, self.owner)
        buried = await owners.expire_dead(self.store, self.proofs, self.owner, ctx=acting(self.actor, self.clock.now()))
        for owner in buried:
            log.get().info("owner.buried", owner=owner.id, host=owner.host, pid=owner.pid)
        return len(buried)

    async def check_clock(self) -> None:
        """Raises ClockSkewed when this machine's clock is too far from the database's to take work."""
        await check_skew(self.store)


async def check_descriptors() -> None:
    """Raises OutOfDescriptors while starts are refused, so that the shortage is reported even if nothing is started."""
    if descriptors.are_short():
        raise descriptors.OutOfDescriptors
