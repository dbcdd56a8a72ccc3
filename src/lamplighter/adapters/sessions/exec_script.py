"""Calls of a provider script: `<script> <op> [session] [args]`, each with a time limit."""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lamplighter.kit.errors import LampError
from lamplighter.ports.sessions import ProviderUnavailable

CALL_LIMIT = timedelta(seconds=30)
START_LIMIT = timedelta(seconds=120)
_UNKNOWN_OP = 2


class ScriptFailed(LampError):
    """The script said no; its standard error is the reason."""


@dataclass
class Script:
    """`unknown` remembers the operations it does not have, so that they are asked for once only."""

    path: Path
    env: dict[str, str]
    unknown: set[str] = field(default_factory=set)

    async def call(self, *words: str, stdin: str = "", within: timedelta = CALL_LIMIT) -> str | None:
        """Its output; None for an operation it does not know. Raises ScriptFailed and ProviderUnavailable."""
        operation = words[0]
        if operation in self.unknown:
            return None
        process = await self._spawn(words)
        out, err = await _within(process, stdin.encode(), within, f"{self.path.name} {operation}")
        if process.returncode == _UNKNOWN_OP:
            self.unknown.add(operation)
            return None
        if process.returncode:
            said = err.decode(errors="replace").strip()[-500:]
            raise ScriptFailed(f"{self.path.name} {operation} failed: {said or f'status {process.returncode}'}")
        return out.decode(errors="replace")

    async def _spawn(self, words: tuple[str, ...]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                str(self.path), *words, env=self.env, start_new_session=True,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise ProviderUnavailable(
                f"The provider script {self.path} cannot be run: {error.strerror}.",
                hint="Check [session] provider in city.toml, and that the script may be executed.",
            ) from error


async def _within(
    process: asyncio.subprocess.Process, stdin: bytes, within: timedelta, what: str
) -> tuple[bytes, bytes]:
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await process.communicate(stdin)
    except TimeoutError:
        raise ProviderUnavailable(f"{what} did not answer within {within.total_seconds():g} s.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
