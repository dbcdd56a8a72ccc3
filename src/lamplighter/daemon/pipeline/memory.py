"""Looks whether the machine has the memory that `[limits] memory` asks for, and tells when that changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.domain.runs.at_work import too_little
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.ids import IdSource
from lamplighter.services.context import acting
from lamplighter.services.runs.bounds import Bounds, most_of
from lamplighter.store.tx import Store

Available = Callable[[], int | None]
"""The megabytes of memory that are available on this machine; None where nobody can tell."""


@dataclass
class Memory:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    node: str
    available: Available
    _low: bool = False

    async def bounds(self, *, rig: str = "", preset: str = "", login: str = "") -> Bounds:
        """What bounds a run with these: the configuration in force, and the memory that is available now."""
        most = most_of(self.active.city.limits)
        return Bounds(self.active.rules, most, rig, preset, login, await self.short_of())

    async def short_of(self) -> str:
        """Why nothing starts for want of memory; empty if it may."""
        wanted = self.active.city.limits.memory
        if not wanted and not self._low:
            return ""
        available = await asyncio.to_thread(self.available)
        why = too_little(available, wanted)
        if bool(why) != self._low:
            self._low = bool(why)
            await self._tell(available, wanted, why)
        return why

    async def _tell(self, available: int | None, wanted: int, why: str) -> None:
        kind = "controller.memory_low" if why else "controller.memory_enough"
        told = why or "Runs start again: the memory that `[limits] memory` asks for is available."
        log.get().warning("memory.low", why=why) if why else log.get().info("memory.enough", available=available)
        payload = {"node": self.node, "available_mb": available, "wanted_mb": wanted}
        ctx = acting("controller", self.clock.now(), self.ids)
        event = ctx.event(kind, subject=self.node, message=told, payload=payload)
        await self.store.transact(lambda tx: tx.events.append(event))
