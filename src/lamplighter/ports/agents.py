"""What the patrol needs of agents: building a session, counting waiting work, and knowing which instances are busy."""

from typing import Protocol

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.sessions.model import SessionSpec


class Workshop(Protocol):
    """Builds the specification of an agent's session. Called on a thread, because it reads and writes files."""

    def build(self, loaded: LoadedCity, agent: Agent, instance: str) -> SessionSpec:
        """Write the hook files and the agent program's files, and return the specification. Raises LampError."""
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
        """Put back the beads held by an instance that will not return; returns how many."""
        ...


class PoolCheck(Protocol):
    """Runs a pool's own check."""

    async def __call__(self, loaded: LoadedCity, agent: Agent) -> int:
        """How many instances are wanted. Raises LampError when the check gives no number."""
        ...
