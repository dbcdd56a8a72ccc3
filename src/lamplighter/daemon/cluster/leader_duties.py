"""Duties of one process for all: for its city if no controller does them, and for its node if several share it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from lamplighter.daemon.ticks import Phase
from lamplighter.domain.city.model import City
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services import logins, nodes
from lamplighter.services.context import acting
from lamplighter.services.runs import review
from lamplighter.store.tx import Store

ACTOR = "finalizer"
EVERY_MINUTE = timedelta(minutes=1)
FORGOTTEN_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class LeaderDuties:
    store: Store
    clock: Clock
    ids: IdSource
    me: review.Worker

    def phases(self, city: City) -> list[Phase]:
        """Phases for the process that leads the city."""

        async def end_stranded() -> list[str]:
            return await self.end_stranded(city.workers.lost_after)

        return [Phase("lost_nodes", end_stranded), Phase("old_nodes", self.prune, at_most_every=EVERY_MINUTE)]

    async def end_stranded(self, lost_after: timedelta) -> list[str]:
        """Fail the runs of nodes that have been gone for longer than `lost_after`; returns the runs."""
        now = self.clock.now()
        ctx = acting(ACTOR, now, self.ids)
        ended = await self.store.transact(nodes.end_stranded, before=now - lost_after, ctx=ctx)
        if ended:
            log.get().warning("runs.node_lost", runs=ended)
        return ended

    async def prune(self) -> int:
        await self.store.transact(logins.prune, now=self.clock.now())
        return await self.store.transact(nodes.prune, before=self.clock.now() - FORGOTTEN_AFTER)

    def for_city(self, phase: Phase) -> Phase:
        """The phase, but run only while this process leads the city."""
        return _guarded(phase, self._leads)

    def for_node(self, phase: Phase) -> Phase:
        """The phase, but run only while this process leads its node."""
        return _guarded(phase, self._leads_node)

    async def _leads(self) -> bool:
        return await self.store.read(nodes.leads, self.me.owner)

    async def _leads_node(self) -> bool:
        return await self.store.read(nodes.leads_node, self.me.owner, self.me.node)


def _guarded(phase: Phase, may: Callable[[], Awaitable[bool]]) -> Phase:
    async def tick() -> object:
        return await phase.tick() if await may() else None

    return replace(phase, tick=tick)
