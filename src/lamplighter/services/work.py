"""Agents' work in the city's own store: busy instances, waiting beads, and releasing held beads."""

from dataclasses import dataclass

from lamplighter.domain.beads.model import POOL_LABEL
from lamplighter.kit.clock import Clock
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import Context, acting
from lamplighter.store.tx import Store, Tx

ACTOR = "controller"


@dataclass(frozen=True)
class OwnWork:
    store: Store
    clock: Clock

    async def busy(self) -> frozenset[str]:
        return await self.store.read(lambda tx: tx.beads.at_work())

    async def demand(self, pool: str) -> int:
        return await self.store.read(lambda tx: tx.beads.waiting(f"{POOL_LABEL}{pool}"))

    async def free(self, instance: str) -> int:
        if not await self.store.read(lambda tx: tx.beads.held_by(instance)):
            return 0
        return await self.store.transact(free, instance, ctx=acting(ACTOR, self.clock.now()))


def free(tx: Tx, instance: str, *, ctx: Context) -> int:
    """Release every bead in progress that `instance` holds; returns how many."""
    held = tx.beads.held_by(instance)
    for bead in held:
        beads.release(tx, bead, ctx=ctx)
    return len(held)
