"""One git command: in a process group of its own, with a time limit, and without questions."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.ports.worktrees import GitFailed

LIMIT = timedelta(seconds=120)
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ADVICE": "0"}


class Git:
    """`env` is what git may see; variables that would point it to another repository are left out, `more` is added.

    Called, it is awaited, and a caller that is cancelled ends it; `run` waits for it, for code without an event loop.
    """

    def __init__(
        self, env: Mapping[str, str], *, limit: timedelta = LIMIT, more: Mapping[str, str] | None = None
    ) -> None:
        self._env = {key: value for key, value in env.items() if not key.startswith("GIT_")} | _QUIET | dict(more or {})
        self._limit = limit.total_seconds()

    def run(self, cwd: Path, *args: str) -> str:
        """What it printed. Raises GitFailed."""
        return _printed(args, self._ended(args, self._start(cwd, args)))

    async def __call__(self, cwd: Path, *args: str) -> str:
        """What it printed. Raises GitFailed."""
        return _printed(args, await self._awaited(cwd, args))

    async def ok(self, cwd: Path, *args: str) -> bool:
        """Whether it succeeded, for commands that answer a question by their exit code."""
        return (await self._awaited(cwd, args))[0] == 0

    async def _awaited(self, cwd: Path, args: tuple[str, ...]) -> tuple[int, bytes, bytes]:
        process = self._start(cwd, args)
        ending = asyncio.ensure_future(asyncio.to_thread(self._ended, args, process))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            _kill(process)
            await asyncio.wait({ending})
            ending.exception()  # killed, it has failed; nobody asks any more
            raise

    def _start(self, cwd: Path, args: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                ["git", *args], cwd=cwd, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise GitFailed(args[0], str(error)) from error

    def _ended(self, args: tuple[str, ...], process: "subprocess.Popen[bytes]") -> tuple[int, bytes, bytes]:
        with process:
            try:
                said, complained = process.communicate(timeout=self._limit)
            except subprocess.TimeoutExpired:
                raise GitFailed(args[0], f"it took longer than {self._limit:g} s") from None
            finally:
                _kill(process)
        return process.returncode, said, complained


def _printed(args: tuple[str, ...], ended: tuple[int, bytes, bytes]) -> str:
    code, said, complained = ended
    if code != 0:
        lines = complained.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(args[0], (lines[-1] if lines else f"exit code {code}").rstrip("."))
    return said.decode("utf-8", "surrogateescape")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """The whole group, for git starts helpers and hooks, and they would keep the pipes open; nothing once it ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
