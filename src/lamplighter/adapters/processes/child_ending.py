"""Ends a child process of `run_child` with every process it started; needs an event loop, which commands do without."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.adapters.processes.table import Process, identity_of
from lamplighter.adapters.processes.tree import ProcessTable, end_all, members
from lamplighter.kit import descriptors, log

GRACE = timedelta(milliseconds=200)
"""The time between TERM and KILL; git removes its lock files in less."""
_FOR_A_LOOK = 6


@dataclass(frozen=True)
class _CarriesId:
    child_id: str

    def on(self, process: Process) -> bool:
        return process.child_id == self.child_id


def end_carriers(pid: int, child_id: str) -> None:
    """End the child `pid`, its descendants, and all that carry `child_id`; logs it if that is not possible now."""

    async def end() -> None:
        table, who = ProcessTable(), identity_of(pid)
        roots = (who,) if who is not None else ()
        for _ in range(2):  # a process in the middle of exec has no environment to be recognised by
            await end_all(table, lambda found: members(found, roots, _CarriesId(child_id)), grace=GRACE)

    try:
        _need_descriptors()
        with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
            thread.submit(lambda: asyncio.run(end())).result()
    except (descriptors.OutOfDescriptors, OSError) as error:
        log.get().warning("child.only_its_group_ended", pid=pid, error=str(error))


def _need_descriptors() -> None:
    """Raises OSError unless an event loop can be made and a process looked at: half a loop cannot be closed cleanly."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_FOR_A_LOOK))
    finally:
        for fd in opened:
            os.close(fd)
