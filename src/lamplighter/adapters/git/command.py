"""One git command: in a process group of its own, with a time limit, and without questions."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.ports.worktrees import GitFailed

LIMIT = timedelta(seconds=120)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ADVICE": "0"}


class Git:
    """`env` is what git may see; variables that would point it to another repository are left out."""

    def __init__(self, env: Mapping[str, str], *, limit: timedelta = LIMIT) -> None:
        self._env = {key: value for key, value in env.items() if not key.startswith("GIT_")} | _QUIET
        self._limit = limit

    async def __call__(self, cwd: Path, *args: str) -> str:
        """What it printed. Raises GitFailed."""
        code, said, complained = await self._run(cwd, args)
        if code != 0:
            lines = complained.strip().splitlines()
            raise GitFailed(args[0], (lines[-1] if lines else f"exit code {code}").rstrip("."))
        return said

    async def ok(self, cwd: Path, *args: str) -> bool:
        """Whether it succeeded, for commands that answer a question by their exit code."""
        return (await self._run(cwd, args))[0] == 0

    async def _run(self, cwd: Path, args: tuple[str, ...]) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                "git", *args, cwd=cwd, env=self._env, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise GitFailed(args[0], str(error)) from error
        try:
            async with asyncio.timeout(self._limit.total_seconds()):
                said, complained = await process.communicate()
        except TimeoutError:
            raise GitFailed(args[0], f"it took longer than {self._limit.total_seconds():g} s") from None
        finally:
            if process.returncode is None:
                await _end(process)
        return process.returncode or 0, said.decode("utf-8", "surrogateescape"), complained.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """The whole group: git starts helpers and hooks."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
