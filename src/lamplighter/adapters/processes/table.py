"""Lists the processes of the machine: parents, start times, and the session each was started for."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from lamplighter.domain.sessions.meta import ENV_CITY_ID, ENV_SESSION, ENV_SESSION_ID
from lamplighter.kit import descriptors
from lamplighter.kit.records import record

ENV_CHILD_ID = "LAMP_CHILD_ID"
"""Holds the id of the call whose child the process descends from; see adapters/processes/child.py."""
_PROC = Path("/proc")
_PS_COLUMNS = "pid=,ppid=,stat=,lstart=,command="
_PS_LIMIT_S = 10
_PART = 65536


@record
class Identity:
    """Identifies one process for ever: pids are reused, and start times begin anew with every boot."""

    pid: int
    start: str
    boot: str


@record
class Process:
    pid: int
    parent: int
    start: str
    name: str
    zombie: bool = False
    session_id: str = ""
    session: str = ""
    city: str = ""
    child_id: str = ""

    def identity(self) -> Identity:
        return Identity(self.pid, self.start, boot_id())


_NOBODY: Mapping[int, Process] = MappingProxyType({})


def on_linux() -> bool:
    """A call and not `sys.platform`, so that a type check on one system covers the code for both."""
    return sys.platform.startswith("linux")


@cache
def boot_id() -> str:
    if on_linux():
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    asked = subprocess.run(
        ["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False, timeout=_PS_LIMIT_S
    )
    return asked.stdout.strip() or "unknown"


def booted_at() -> datetime | None:
    """When the machine was started, by its present clock; None where that cannot be read."""
    if on_linux():
        told, found = (_PROC / "stat").read_text(), re.compile(r"^btime (\d+)$", re.MULTILINE)
    else:
        asked = subprocess.run(
            ["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=False, timeout=_PS_LIMIT_S
        )
        told, found = asked.stdout, re.compile(r"\bsec = (\d+)")
    seconds = found.search(told)
    return None if seconds is None else datetime.fromtimestamp(int(seconds[1]), UTC)


def identity_of(pid: int) -> Identity | None:
    """The process that has `pid` now; None when there is none or it is a zombie."""
    process = _one_from_proc(pid) if on_linux() else _one_from_ps(pid)
    return None if process is None or process.zombie else process.identity()


def is_alive(who: Identity) -> bool:
    return who.boot == boot_id() and identity_of(who.pid) == who


def all_processes(known: Mapping[int, Process] = _NOBODY) -> Mapping[int, Process]:
    """All processes by pid.

    `known` is an earlier result, from which processes known to belong to a session take their marks: a process keeps
    the session it was started for.
    """
    found = _all_from_proc(known) if on_linux() else parse_ps(_ps("-A", "-E", "-ww"))
    return {process.pid: process for process in found}


def parse_stat(text: str) -> Process | None:
    """Parse a line of `/proc/PID/stat`; the name is in brackets and may hold brackets and blanks itself."""
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    pid, _, name = head.partition(" (")
    if not bracket or len(fields) < 20:
        return None
    return Process(pid=int(pid), parent=int(fields[1]), start=fields[19], name=name, zombie=fields[0] in "ZX")


def parse_ps(text: str) -> Iterator[Process]:
    """Parse lines of `ps` with `pid ppid stat lstart command`; the environment follows the command."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 9 or not (words[0].isdigit() and words[1].isdigit()):
            continue
        marks = dict(word.split("=", 1) for word in words[9:] if word.startswith("LAMP_") and "=" in word)
        yield Process(
            pid=int(words[0]),
            parent=int(words[1]),
            start=" ".join(words[3:8]),
            name=os.path.basename(words[8]),  # noqa: PTH119  a command is not a path of ours
            zombie=words[2].startswith("Z"),
            session_id=marks.get(ENV_SESSION_ID, ""),
            session=marks.get(ENV_SESSION, ""),
            city=marks.get(ENV_CITY_ID, ""),
            child_id=marks.get(ENV_CHILD_ID, ""),
        )


def _one_from_proc(pid: int) -> Process | None:
    found = _read(f"/proc/{pid}/stat", parts=1)  # one read gets it whole; a second would double the cost
    return None if found is None else parse_stat(found.decode(errors="replace"))


def _read(path: str, parts: int = 1000) -> bytes | None:
    """Read without a file object, which would cost more than the read; None when it is gone or another user's.

    Raises OutOfDescriptors, because a process that cannot be looked at may still exist.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error
        return None
    try:
        found = b""
        while parts > 0 and (part := os.read(fd, _PART)):
            found += part
            parts -= 1
        return found
    except OSError:
        return None
    finally:
        os.close(fd)


def _one_from_ps(pid: int) -> Process | None:
    return next(parse_ps(_ps("-p", str(pid))), None)


def _ps(*which: str) -> str:
    return subprocess.run(
        ["ps", *which, "-o", _PS_COLUMNS], capture_output=True, text=True, check=False, timeout=_PS_LIMIT_S
    ).stdout


def _entries() -> list[str]:
    try:
        return os.listdir(_PROC)  # noqa: PTH208  plain names are half the cost of paths
    except OSError as error:
        if descriptors.is_shortage(error):
            raise descriptors.OutOfDescriptors from error
        raise


def _all_from_proc(known: Mapping[int, Process]) -> Iterator[Process]:
    for entry in _entries():
        if entry.isdigit() and (process := _one_from_proc(int(entry))) is not None:
            before = known.get(process.pid)
            if before is not None and before.start == process.start and before.session_id:
                marks = (before.session_id, before.session, before.city, before.child_id)
                yield Process(process.pid, process.parent, process.start, process.name, process.zombie, *marks)
            else:
                yield _with_session(process)


def _with_session(process: Process) -> Process:
    data = _read(f"/proc/{process.pid}/environ")
    if data is None or (ENV_SESSION_ID.encode() not in data and ENV_CHILD_ID.encode() not in data):
        return process
    marks = dict(item.split(b"=", 1) for item in data.split(b"\0") if item.startswith(b"LAMP_") and b"=" in item)

    def value(key: str) -> str:
        return marks.get(key.encode(), b"").decode(errors="replace")

    return Process(
        pid=process.pid,
        parent=process.parent,
        start=process.start,
        name=process.name,
        zombie=process.zombie,
        session_id=value(ENV_SESSION_ID),
        session=value(ENV_SESSION),
        city=value(ENV_CITY_ID),
        child_id=value(ENV_CHILD_ID),
    )
