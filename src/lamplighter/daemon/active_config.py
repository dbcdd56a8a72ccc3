"""The configuration in force for the automation loops, swapped as a whole on a reload, with a clock guard and tasks."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lamplighter.domain.city.command_env import command_environment
from lamplighter.domain.city.model import City
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs import tracing
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import NotFound
from lamplighter.kit.tasks import tell_failure
from lamplighter.ports.secrets import NoSecrets, SecretSource
from lamplighter.services.rules import Rules
from lamplighter.services.runs.bounds import most_of
from lamplighter.store.errors import ClockSkewed
from lamplighter.store.tx import Store

MOST_SKEW = timedelta(seconds=2)
CLOCK_EVERY = timedelta(seconds=10)


@dataclass
class ActiveConfig:
    city: City
    rules: Rules
    env: Mapping[str, str] = field(default_factory=dict)
    reach: Reach | None = None
    """What this process may take when several nodes share the city's work; None means everything."""

    secrets: SecretSource = field(default_factory=NoSecrets)
    """Opens what the environment of a program refers to, and masks it in what is shown."""

    handed: tracing.Handed = tracing.senders
    """The trace that programs of a run are to join."""

    _envs: dict[str | None, dict[str, str]] = field(default_factory=dict)
    """Cache of the environments for commands, by rig; None stands for commands outside any rig."""

    def swap(self, city: City, rules: Rules) -> None:
        self.city, self.rules = city, rules
        self._envs.clear()

    @property
    def bounds_commands(self) -> bool:
        """Whether a command must be counted, or memory looked at, before it is started."""
        limits = self.city.limits
        return bool(limits.memory) or most_of(limits).bounds_commands

    @property
    def rigs(self) -> frozenset[str] | None:
        return None if self.reach is None else self.reach.rigs

    def holds(self, rig: str) -> bool:
        return self.reach is None or rig in self.reach.rigs

    def dir_of(self, rig: str | None) -> str:
        """Where a command works: the rig's directory, else the city's. Raises NotFound for a rig that is gone."""
        if not rig:
            return str(self.city.root)
        found = self.city.rig(rig)
        if found is None:
            raise NotFound(f"There is no rig `{rig}`.", hint="`lamp rig list` shows those there are.")
        return str(self.city.rig_path(found))

    def env_of(self, rig: str | None) -> dict[str, str]:
        """The environment for the rig's commands; cached and shared, so callers must not change it."""
        if rig not in self._envs:
            self._envs[rig] = command_environment(self.city, rig, parent=self.env)
        return self._envs[rig]


async def check_skew(store: Store) -> None:
    """Raises ClockSkewed when this machine's clock is too far from the database's to take work."""
    offset = await store.clock_offset()
    if abs(offset) > MOST_SKEW:
        raise ClockSkewed(-offset.total_seconds())


@dataclass
class ClockGuard:
    """Checks the clock against the database's at most once in CLOCK_EVERY; a skewed machine must take no work."""

    store: Store
    clock: Clock
    _asked: float | None = None

    async def check(self) -> None:
        """Raises ClockSkewed."""
        now = self.clock.monotonic()
        if self._asked is not None and now - self._asked < CLOCK_EVERY.total_seconds():
            return
        await check_skew(self.store)
        self._asked = now


@dataclass
class Tasks:
    """Background tasks: kept in a set, awaited at the end, and logged when they fail."""

    running: set["asyncio.Task[Any]"] = field(default_factory=set)
    freed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, task: "asyncio.Task[Any]") -> None:
        self.running.add(task)
        task.add_done_callback(tell_failure)
        task.add_done_callback(self._done)

    async def all_done(self) -> None:
        while self.running:
            await asyncio.wait(set(self.running))

    async def drop(self) -> None:
        for task in tuple(self.running):
            task.cancel()
        await self.all_done()

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self.running.discard(task)
        self.freed.set()
