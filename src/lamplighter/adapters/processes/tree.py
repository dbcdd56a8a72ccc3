"""Ends all processes of a session: its descendants, and all that carry its marks in their environment."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Protocol

from lamplighter.adapters.processes.table import Identity, Process, all_processes, identity_of, on_linux
from lamplighter.adapters.processes.watch import all_ended
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.records import record

_KILL_ROUNDS = 5
_KILL_WAIT = timedelta(seconds=2)

Members = Callable[[Mapping[int, Process]], list[Process]]


class Marked(Protocol):
    def on(self, process: Process) -> bool: ...


@record
class Marks:
    """Recognises a session's processes by their environment: the id of this start, or its name in this city."""

    session_id: str
    session: str
    city: str

    def on(self, process: Process) -> bool:
        if process.session_id and process.session_id == self.session_id:
            return True
        return bool(self.session) and process.session == self.session and process.city == self.city


class ProcessTable:
    """Lists all processes; callers that wait at the same time share one listing that begins after they asked."""

    def __init__(self) -> None:
        self._next: asyncio.Task[Mapping[int, Process]] | None = None
        self._running: asyncio.Task[Mapping[int, Process]] | None = None
        self._found: Mapping[int, Process] = {}

    async def look(self) -> Mapping[int, Process]:
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._running))
        return await asyncio.shield(self._next)

    async def _look_after(self, running: asyncio.Task[Mapping[int, Process]] | None) -> Mapping[int, Process]:
        if running is not None:
            await asyncio.wait({running})
        self._running, self._next = self._next, None
        self._found = await asyncio.to_thread(all_processes, self._found)
        return self._found


def members(table: Mapping[int, Process], roots: Iterable[Identity], marks: Marked) -> list[Process]:
    """The roots, the marked, and all descendants of both, parents first, without this process and zombies."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    heads = [table[root.pid] for root in roots if root.pid in table and table[root.pid].start == root.start]
    queue = heads + [process for process in table.values() if marks.on(process)]
    found: dict[int, Process] = {}
    while queue:
        process = queue.pop(0)
        if process.pid not in found:
            found[process.pid] = process
            queue.extend(children.get(process.pid, ()))
    return [process for process in found.values() if process.pid != os.getpid() and not process.zombie]


async def end_all(
    table: ProcessTable, choose: Members, *, grace: timedelta, ask: tuple[signal.Signals, ...] = (signal.SIGTERM,)
) -> bool:
    """Send `ask`, wait up to `grace`, then KILL in a few rounds until none is found; True when none is left."""
    chosen = choose(await table.look())
    if not chosen:
        return True
    if grace > timedelta(0):
        for number in (*ask, signal.SIGCONT):  # a stopped process would not handle the signals
            _signal(chosen, number)
        await all_ended([process.identity() for process in chosen], grace)
    for _ in range(_KILL_ROUNDS):
        left = choose(await table.look())
        if not left:
            return True
        _signal(left, signal.SIGKILL)
        await all_ended([process.identity() for process in left], _KILL_WAIT)
    return not choose(await table.look())


def _signal(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        send(process.identity(), number)


def send(who: Identity, number: signal.Signals) -> bool:
    """Signal this process, never another that got its pid; False when it is gone or may not be signalled."""
    if not on_linux():
        return identity_of(who.pid) == who and _kill(who.pid, number)
    try:
        fd = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _kill_unseen(who, number)
    try:
        if identity_of(who.pid) != who:
            return False
        signal.pidfd_send_signal(fd, number)
    except (OSError, Unavailable):
        return False
    finally:
        os.close(fd)
    return True


def _kill_unseen(who: Identity, number: signal.Signals) -> bool:
    """Without a pidfd, check only the start time before the kill; False when no descriptor is free even for that."""
    try:
        return identity_of(who.pid) == who and _kill(who.pid, number)
    except Unavailable:
        return False


def _kill(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
