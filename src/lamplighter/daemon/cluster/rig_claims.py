"""Keeps what a process may take in step with its configuration, its disk and the other nodes."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.limits import left_out
from lamplighter.daemon.ticks import Phase
from lamplighter.domain.city.model import City
from lamplighter.domain.delivery.reach import Reach
from lamplighter.services import nodes
from lamplighter.services.runs import review
from lamplighter.store.owners import TOPIC
from lamplighter.store.tx import Store


@dataclass
class RigClaims:
    """`rigs` returns the paths of the rigs that this process holds, by name.

    With `whole_city` the process also takes the work of rigs that no other node holds, so that a missing rig is
    reported instead of waited for.
    """

    store: Store
    active: ActiveConfig
    me: review.Worker
    rigs: Callable[[City], Mapping[str, str]]
    whole_city: bool = False
    _told: Mapping[str, str] | None = None

    def phase(self) -> Phase:
        return Phase("nodes", self.tick, topics=(TOPIC,))

    async def tick(self) -> None:
        held = await asyncio.to_thread(self.rigs, self.active.city)
        if self._told is not None and held != self._told:
            await self.store.transact(nodes.hold, self.me.owner, self.me.node, held)
        self._told = dict(held)
        reachable = set(held)
        if self.whole_city:
            elsewhere = await self.store.read(nodes.held_by_others, self.me.node)
            reachable |= {rig.name for rig in self.active.city.rigs} - elsewhere
        self.active.reach = Reach(self.me.node, frozenset(reachable), left_out(self.active.city.workers))
