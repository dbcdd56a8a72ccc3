"""Names the sessions that lines are attached to, and finds those whose process was killed.

The server must not destroy such a session when its client goes (`destroy-unattached`): if it hears of another client's
end while this one is about to go, it destroys the session under it and crashes, with all agents in it. So the session
stays; the next process that opens a line ends it, or `lamp stop`.
"""

import os
import signal
from collections.abc import Collection

from lamplighter.adapters.processes.makers import at_work, mark_of
from lamplighter.adapters.processes.table import all_processes
from lamplighter.adapters.processes.tree import send

_PREFIX = "lamp-line-"
CLIENTS = "#{client_pid} #{client_session}"


def new() -> str:
    """A name that tells its process; tmux allows no dot in it."""
    return f"{_PREFIX}{mark_of(os.getpid()).replace('.', '-')}-{os.urandom(4).hex()}"


def left(sessions: str, own: str = "") -> list[str]:
    """Of these names of sessions, one a line, those of lines whose process is dead, and `own`."""
    found = [name for name in sessions.splitlines() if name.startswith(_PREFIX)]
    return [name for name in found if name == own or not _used(name)]


def _used(name: str) -> bool:
    mark, _, _ = name.removeprefix(_PREFIX).rpartition("-")
    return at_work(mark.replace("-", "."))


def end_clients(told: str, sessions: Collection[str]) -> None:
    """Kill the clients of these sessions; `told` has a line for each client of the server, as CLIENTS.

    A client whose process was killed before it had read all may stay for ever, and the server with it.
    """
    pairs = [line.partition(" ") for line in told.splitlines()]
    pids = {int(pid) for pid, _, session in pairs if pid.isdigit() and session in sessions}
    table = all_processes() if pids else {}
    for pid in pids & table.keys():
        if table[pid].name.startswith("tmux"):
            send(table[pid].identity(), signal.SIGKILL)
