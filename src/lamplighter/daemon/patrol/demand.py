"""How many instances each pool needs: checked in parallel, each with a time limit; a patrol never waits for a check."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.tasks import spawn
from lamplighter.ports.agents import PoolCheck, Work

SIDE_BY_SIDE = 8


@dataclass
class Demand:
    """`known` has the result of each pool's last check; None (unknown) after a failed one: what runs is then kept."""

    check: PoolCheck
    work: Work
    clock: Clock
    changed: Callable[[], None]
    known: dict[str, int | None] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    _asking: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _asked: dict[str, float] = field(default_factory=dict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))

    def refresh(self, loaded: LoadedCity, pools: tuple[Agent, ...], floor: timedelta) -> None:
        """Start the checks that are due; a pool with a check of its own is asked at most once in `floor`."""
        now = self.clock.monotonic()
        names = {pool.qualified_name for pool in pools}
        for gone in self.known.keys() - names:
            self._forget(gone)
        for pool in pools:
            name = pool.qualified_name
            due = self._asked.get(name, float("-inf")) + (floor.total_seconds() if _has_check(pool) else 0.0)
            if name not in self._asking and now >= due and pool.pool is not None and pool.pool.max > 0:
                self._asked[name] = now
                task = spawn(self._ask(loaded, pool), name=f"check {name}")
                self._asking[name] = task
                task.add_done_callback(lambda _, name=name: self._asking.pop(name, None))  # type: ignore[misc]  # a bound default

    async def settled(self) -> None:
        """Wait until every check that was started has its answer or has reached its time limit."""
        while self._asking:
            await asyncio.wait(list(self._asking.values()))

    async def close(self) -> None:
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    async def _ask(self, loaded: LoadedCity, pool: Agent) -> None:
        name = pool.qualified_name
        before, first = self.known.get(name), name not in self.known
        try:
            if _has_check(pool):
                async with self._room:
                    self.known[name] = await self.check(loaded, pool)
            else:
                self.known[name] = await self.work.demand(name)
        except (LampError, OSError) as error:
            self.known[name] = None
            if self.problems.get(name) != str(error):
                log.get().warning("pool.check_failed", pool=name, error=str(error))
            self.problems[name] = str(error)
        else:
            self.problems.pop(name, None)
        if first or before != self.known[name]:
            self.changed()

    def _forget(self, name: str) -> None:
        self.known.pop(name, None)
        self.problems.pop(name, None)
        self._asked.pop(name, None)


def _has_check(pool: Agent) -> bool:
    return pool.pool is not None and bool(pool.pool.check)
