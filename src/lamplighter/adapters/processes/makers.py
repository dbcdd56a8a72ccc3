"""Marks what a process makes with a name of that process, so that others can tell whether it still lives."""

import hashlib

from lamplighter.adapters.processes.table import identity_of


def mark_of(pid: int) -> str:
    """Identifies one process, also after its pid is reused, as a part of a name: its pid, a dot, letters and digits."""
    who = identity_of(pid)
    told = "" if who is None else f"{who.start} {who.boot}"
    return f"{pid}.{hashlib.sha256(told.encode()).hexdigest()[:12] if told else 'gone'}"


def at_work(mark: str) -> bool:
    """Whether the process of this mark is still alive."""
    pid = mark.partition(".")[0]
    return pid.isdigit() and mark == mark_of(int(pid))
