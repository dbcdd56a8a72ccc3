"""Limits how many items of a group one process handles in parallel, by the `[workers]` section in force."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.domain.city.run_sections import Workers
from lamplighter.domain.delivery.outbox import ItemKind


class ItemGroup(StrEnum):
    ENRICH = "enrich"
    EXECUTE = "execute"
    NOTIFY = "notify"


OWN_LIMITS = frozenset({ItemKind.SEND_NOTICE})
"""Kinds that wait for no place of their group: each destination of notices has places of its own."""
GROUP_OF_KIND: Mapping[ItemKind, ItemGroup] = {
    ItemKind.ENQUEUE_ENRICH: ItemGroup.ENRICH,
    ItemKind.ENQUEUE_EXECUTE: ItemGroup.EXECUTE,
    ItemKind.COOK: ItemGroup.EXECUTE,
    ItemKind.NOTIFY_RUN_TERMINAL: ItemGroup.NOTIFY,
    ItemKind.NOTIFY_SESSION_COMPLETE: ItemGroup.NOTIFY,
    ItemKind.NOTIFY_AUTOMATION: ItemGroup.NOTIFY,
    ItemKind.SEND_NOTICE: ItemGroup.NOTIFY,
}


def limit_of(group: ItemGroup, workers: Workers) -> int:
    match group:
        case ItemGroup.ENRICH:
            return workers.enrich
        case ItemGroup.EXECUTE:
            return workers.execute
        case ItemGroup.NOTIFY:
            return workers.notify


def left_out(workers: Workers) -> frozenset[str]:
    """Kinds of items whose limit is 0: a process with this configuration takes none of them."""
    return frozenset(kind.value for kind, group in GROUP_OF_KIND.items() if limit_of(group, workers) == 0)


@dataclass
class GroupLimits:
    active: ActiveConfig
    busy: Counter[ItemGroup] = field(default_factory=Counter)
    _freed: dict[ItemGroup, asyncio.Condition] = field(
        default_factory=lambda: {group: asyncio.Condition() for group in ItemGroup}
    )

    @asynccontextmanager
    async def room(self, kind: ItemKind) -> AsyncIterator[None]:
        """Wait until the item's group is below its limit.

        The limit counts as at least 1, so that claimed items are handled even if it was set to 0 meanwhile.
        """
        group = GROUP_OF_KIND.get(kind)
        if group is None or kind in OWN_LIMITS:
            yield
            return
        freed = self._freed[group]
        async with freed:
            await freed.wait_for(lambda: self._has_room(group))
            self.busy[group] += 1
            if self._has_room(group):
                freed.notify()  # the limit may have been raised while several waited
        try:
            yield
        finally:
            self.busy[group] -= 1
            async with freed:
                freed.notify()

    def _has_room(self, group: ItemGroup) -> bool:
        return self.busy[group] < max(limit_of(group, self.active.city.workers), 1)
