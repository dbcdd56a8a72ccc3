"""Which instances are at work on a bead; a bead store that fails or is slow never holds up the patrol."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from lamplighter.kit import log
from lamplighter.kit.errors import LampError
from lamplighter.kit.tasks import spawn
from lamplighter.ports.agents import Work

PATIENCE_SECONDS = 2.0


@dataclass
class BusyInstances:
    """`changed` is called when an answer comes after the patrol stopped waiting for it."""

    work: Work
    changed: Callable[[], None]
    known: frozenset[str] = frozenset()  # the last answer
    problem: str | None = None
    _asking: asyncio.Task[str | None] | None = None
    _late: set[asyncio.Task[str | None]] = field(default_factory=set)

    async def ask(self, running: frozenset[str]) -> frozenset[str]:
        """The instances at work. Where that cannot be known, those that were at work before and all in `running`."""
        if self._asking is None:
            self._asking = spawn(self._ask(), name="which agents are at work")
        task = self._asking
        done, _ = await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        if done:
            self._asking = None
            self._tell(task.result())
            return self.known if self.problem is None else self.known | running
        if task not in self._late:
            self._late.add(task)
            task.add_done_callback(self._arrived)
            self._tell("The bead store does not answer; it is not known which agents are at work.")
        return self.known | running

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> str | None:
        """Ask the store; the problem if it cannot tell."""
        try:
            self.known = await self.work.busy()
        except (LampError, OSError) as error:
            return str(error)
        return None

    def _arrived(self, task: asyncio.Task[str | None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            self.changed()

    def _tell(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.get().warning("beads.unknown", error=problem)
        self.problem = problem
