"""Agents' work in a bead store outside the city; called on a thread, because the store may be a program or remote."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lamplighter.domain.beads.model import POOL_LABEL, BeadChange, BeadFilter, BeadStatus
from lamplighter.ports.beads import BeadStore

MOST = 10_000


@dataclass(frozen=True)
class OutsideWork:
    beads: Callable[[], BeadStore]

    async def busy(self) -> frozenset[str]:
        return await asyncio.to_thread(self._busy)

    async def demand(self, pool: str) -> int:
        return await asyncio.to_thread(self._waiting, f"{POOL_LABEL}{pool}")

    async def free(self, instance: str) -> int:
        return await asyncio.to_thread(self._free, instance)

    def _busy(self) -> frozenset[str]:
        found = self.beads().matching(BeadFilter(status=BeadStatus.IN_PROGRESS), limit=MOST)
        return frozenset(bead.assignee for bead in found if bead.assignee)

    def _waiting(self, label: str) -> int:
        store = self.beads()
        states = (BeadStatus.OPEN, BeadStatus.IN_PROGRESS)
        return sum(len(store.matching(BeadFilter(label=label, status=state), limit=MOST)) for state in states)

    def _free(self, instance: str) -> int:
        store = self.beads()
        held = store.matching(BeadFilter(status=BeadStatus.IN_PROGRESS, assignee=instance), limit=MOST)
        for bead in held:
            store.change(bead.id, BeadChange(status=BeadStatus.OPEN, assignee=""))
        return len(held)
