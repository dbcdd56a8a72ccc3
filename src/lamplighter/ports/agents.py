"""Agents and their work, as the patrol needs them: how a session is built, how much work waits, who is at work."""

from typing import Protocol

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.sessions.model import SessionSpec


class Workshop(Protocol):
    """Builds what a provider starts. Called on a thread: it reads and writes files."""

    def build(self, loaded: LoadedCity, agent: Agent, instance: str) -> SessionSpec:
        """Hook files and files of the agent program are in place afterwards. Raises LampError."""
        ...


class Work(Protocol):
    """The beads of agents."""

    async def busy(self) -> frozenset[str]:
        """Instances that hold a bead in progress."""
        ...

    async def demand(self, pool: str) -> int:
        """Beads for a pool that are open or in progress."""
        ...

    async def free(self, instance: str) -> int:
        """Put back what an instance that will not return held; how many beads."""
        ...


class PoolCheck(Protocol):
    """Runs a pool's own check."""

    async def __call__(self, loaded: LoadedCity, agent: Agent) -> int:
        """How many instances are wanted. Raises LampError where that is not to be had."""
        ...
