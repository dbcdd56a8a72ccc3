"""How many items of a kind one process handles side by side, as `[workers]` says it just now."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from lamplighter.daemon.scene import Scene
from lamplighter.domain.city.sections import Workers
from lamplighter.domain.delivery.outbox import ItemKind


class Lane(StrEnum):
    ENRICH = "enrich"
    EXECUTE = "execute"
    NOTIFY = "notify"


LANES: Mapping[ItemKind, Lane] = {
    ItemKind.ENQUEUE_ENRICH: Lane.ENRICH,
    ItemKind.ENQUEUE_EXECUTE: Lane.EXECUTE,
    ItemKind.COOK: Lane.EXECUTE,
    ItemKind.NOTIFY_RUN_TERMINAL: Lane.NOTIFY,
    ItemKind.NOTIFY_SESSION_COMPLETE: Lane.NOTIFY,
    ItemKind.NOTIFY_AUTOMATION: Lane.NOTIFY,
}


def limit_of(lane: Lane, workers: Workers) -> int:
    match lane:
        case Lane.ENRICH:
            return workers.enrich
        case Lane.EXECUTE:
            return workers.execute
        case Lane.NOTIFY:
            return workers.notify


def left_out(workers: Workers) -> frozenset[str]:
    """Kinds of items that a process so configured takes none of."""
    return frozenset(kind.value for kind, lane in LANES.items() if limit_of(lane, workers) == 0)


@dataclass
class Lanes:
    scene: Scene
    busy: Counter[Lane] = field(default_factory=Counter)
    _freed: dict[Lane, asyncio.Condition] = field(default_factory=lambda: {lane: asyncio.Condition() for lane in Lane})

    @asynccontextmanager
    async def room(self, kind: ItemKind) -> AsyncIterator[None]:
        """Waits for its turn. What is in hand passes, however low the limit was set meanwhile."""
        lane = LANES.get(kind)
        if lane is None:
            yield
            return
        freed = self._freed[lane]
        async with freed:
            await freed.wait_for(lambda: self._has_room(lane))
            self.busy[lane] += 1
            if self._has_room(lane):
                freed.notify()  # the limit may have been raised while several waited
        try:
            yield
        finally:
            self.busy[lane] -= 1
            async with freed:
                freed.notify()

    def _has_room(self, lane: Lane) -> bool:
        return self.busy[lane] < max(limit_of(lane, self.scene.city.workers), 1)
