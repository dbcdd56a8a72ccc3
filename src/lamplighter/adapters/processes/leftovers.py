"""Ends the processes and removes the files that earlier starts left, in the background and for many starts at once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.adapters.processes.table import Process
from lamplighter.adapters.processes.tree import ProcessTable, end_all, members
from lamplighter.kit.clock import Clock
from lamplighter.kit.records import record
from lamplighter.kit.tasks import spawn
from lamplighter.ports.sessions import GRACE

AFTER = timedelta(seconds=1)  # listing all processes costs more than a start, and starts come first


@record
class _OfStarts:
    ids: frozenset[str]

    def on(self, process: Process) -> bool:
        return bool(process.session_id) and process.session_id in self.ids


@dataclass
class Leftovers:
    """Works in the background, so that a new start need not wait for what its predecessor left running."""

    table: ProcessTable
    clock: Clock
    clear_away: Callable[[], None]
    _ids: set[str] = field(default_factory=set)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)

    def end_soon(self, session_id: str) -> None:
        if not self._ids:
            task = spawn(self._end(), name="leftovers")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._ids.add(session_id)

    async def all_ended(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending)

    async def _end(self) -> None:
        await self.clock.wait(asyncio.Event(), at_most=AFTER)
        marks, self._ids = _OfStarts(frozenset(self._ids)), set()
        await asyncio.to_thread(self.clear_away)
        await end_all(self.table, lambda table: members(table, (), marks), grace=GRACE)
