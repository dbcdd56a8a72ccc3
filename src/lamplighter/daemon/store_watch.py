"""Notices within a second that the city's database, or its whole state directory, was removed or replaced."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import CityGone, Unavailable
from lamplighter.kit.loop import every

EVERY = timedelta(seconds=1)


class WatchedStore(Protocol):
    def check(self) -> None:
        """Raises Unavailable when the database file was removed, replaced or overwritten."""
        ...

    def save_copy(self, to: Path) -> Awaitable[None]:
        """Save all that can still be read as a new file. Raises Unavailable."""
        ...


@dataclass
class StoreWatch:
    """Without its database a city fires and records nothing, but its agents are still looked after.

    Without the controller's lock no client can reach this process, and another may run the city: the process ends.
    """

    store: WatchedStore
    clock: Clock
    locked: Callable[[], bool]
    """Whether the controller's lock is still where other processes look for it."""
    copy: Path
    """Where to save what can still be read of a lost database; the time is appended to the name."""
    problem: str | None = None
    _saved: Path | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def loop(self) -> None:
        await every(lambda: EVERY, self.tick, clock=self.clock, wake=self.wake)

    async def tick(self) -> None:
        """Raises CityGone."""
        try:
            self.store.check()
        except Unavailable as error:
            if self.problem is None:
                self.problem = error.message
                log.get().error("store.gone", error=error.message, hint=error.hint)
                await self._save()
        else:
            if self.problem is not None:
                self._back()
        if not self.locked():
            raise CityGone(str(self.copy.parent))

    def _back(self) -> None:
        """The original file is back in place and holds all that the saved copy does, so the copy is deleted."""
        self.problem = None
        if self._saved is not None:
            self._saved.unlink(missing_ok=True)
        log.get().info("store.back")

    async def _save(self) -> None:
        to = self.copy.with_name(f"{self.copy.name}.{self.clock.now():%Y%m%dT%H%M%SZ}")
        try:
            await self.store.save_copy(to)
        except Unavailable as error:
            log.get().error("store.not_saved", to=str(to), error=error.message)
        else:
            self._saved = to
            self.problem = f"{self.problem} What it held is saved as {to}."
            log.get().error("store.saved", to=str(to), hint="Stop the city, put it in place, start it.")
