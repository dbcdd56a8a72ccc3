"""A puppet session for test suites: a program that executes commands from its input, line by line."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.sessions.model import SessionName, SessionSpec
from lamplighter.kit.limits import TimeLimit

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WAIT = timedelta(seconds=20)

_PUPPET = """
trap 'echo interrupted' INT
spawned() { "$1" -c 'import os, time; os.setsid(); print("child", os.getpid(), flush=True); time.sleep(600)'; }
echo ready
while :; do
  IFS= read -r line || { [ $? -gt 1 ] && continue; echo end-of-input; sleep 600; }
  case $line in
    "say "*) echo "said ${line#say }" ;;
    "env "*) eval "echo \\"env ${line#env } is \\$${line#env }\\"" ;;
    "exit "*) exit "${line#exit }" ;;
    "spawn") spawned "$1" & ;;
    "count "*) i=0; while [ $i -lt "${line#count }" ]; do i=$((i+1)); echo "line $i"; done ;;
    "where") pwd ;;
  esac
done
"""


def puppet(name: str, work_dir: Path, **fields: object) -> SessionSpec:
    """A session that prints `ready`, then obeys `say`, `env`, `exit`, `spawn`, `count` and `where`."""
    settings: dict[str, object] = {"env": {"PATH": PATH, "LANG": "C.UTF-8"}} | fields
    return SessionSpec(
        name=SessionName(name),
        command=("/bin/sh", "-c", _PUPPET, "puppet", sys.executable),
        work_dir=str(work_dir),
        **settings,  # type: ignore[arg-type]  # the fields of SessionSpec, by name
    )


async def until(check: Callable[[], Awaitable[bool]], *, within: timedelta = WAIT) -> None:
    """Wait until `check` returns true. Raises TimeoutError."""
    async with TimeLimit(within.total_seconds()):
        while not await check():  # noqa: ASYNC110  other processes cannot set our events
            await asyncio.sleep(0.01)
