"""What agents' tools call: beads and events directly, runs and automations through injected services."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from lamplighter.domain.access import Caller
from lamplighter.domain.acts import Act
from lamplighter.kit.canonical import canonical
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import UsageError
from lamplighter.ports.beads import BeadStore
from lamplighter.ports.runs import AutomationService, CompletionService
from lamplighter.services import events
from lamplighter.store.tx import DirectStore

R = TypeVar("R")


@dataclass(frozen=True)
class CityDesk:
    """Beads and events of one city. Its calls block on disk or a program, so they run on a separate thread."""

    store: Callable[[], DirectStore]
    beads: Callable[[Callable[[], Act]], BeadStore]
    clock: Clock
    closing: Callable[[], None] = lambda: None
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "desk"), compare=False)

    async def with_beads(self, caller: Caller, call: Callable[[BeadStore], R]) -> R:
        return await self._aside(lambda: call(self.beads(partial(self._act, caller))))

    async def emit(
        self, caller: Caller, event_type: str, *, subject: str | None, message: str | None, payload: Any
    ) -> None:
        """Raises what `events.emit` raises, and UsageError for a payload that is not valid JSON."""
        size = len(_written(payload).encode()) if payload is not None else 0
        fact = self._act(caller).event(event_type, subject=subject, message=message, payload=payload)
        await self._aside(lambda: self.store().transact(events.emit, fact, caller=caller, payload_size=size))

    def close(self) -> None:
        self._thread.shutdown()
        self.closing()

    def _act(self, caller: Caller) -> Act:
        return Act(caller.actor, self.clock.now(), caller.run)

    async def _aside(self, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


@dataclass(frozen=True)
class Toolbox:
    """A tool is offered only when the service behind it is set."""

    completion: CompletionService | None = None
    automations: AutomationService | None = None
    desk: CityDesk | None = None


def _written(payload: Any) -> str:
    try:
        return canonical(payload)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"The payload is not JSON that can be used: {error}.", hint="Pass an object of plain values."
        ) from error
