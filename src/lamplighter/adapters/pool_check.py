"""A pool's own check: a shell command in the pool's directory that prints how many instances are wanted."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import work_dir
from lamplighter.domain.sessions.pools import demand_of
from lamplighter.kit.errors import LampError

LIMIT = timedelta(seconds=30)
_SHOWN = 200


class CheckFailed(LampError):
    def __init__(self, pool: str, why: str) -> None:
        super().__init__(
            f"The check of pool `{pool}` {why}; what runs is kept.", hint="Run it by hand in the pool's directory."
        )


@dataclass(frozen=True)
class ShellPoolCheck:
    env: Mapping[str, str]
    limit: timedelta = LIMIT

    async def __call__(self, loaded: LoadedCity, agent: Agent) -> int:
        """Raises CheckFailed. Its whole group is killed at the limit."""
        name, place = agent.qualified_name, work_dir(loaded.city, agent)
        env = session_environment(loaded.city, agent, name, parent=self.env, preset={}, work_dir=place)
        command = agent.pool.check if agent.pool is not None else ""
        status, out, err = await self._run(name, command, str(place if place.is_dir() else loaded.city.root), env)
        if status:
            raise CheckFailed(name, f"ended with status {status}{_said(err or out)}")
        demand = demand_of(out)
        if demand is None:
            raise CheckFailed(name, f"printed no whole number{_said(out)}")
        return demand

    async def _run(self, pool: str, command: str, place: str, env: Mapping[str, str]) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command,
            cwd=place, env=dict(env), start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self.limit.total_seconds()):
                out, err = await process.communicate()
        except TimeoutError:
            raise CheckFailed(pool, f"took longer than {self.limit.total_seconds():g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if process.returncode is None:
                await process.wait()
        return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")


def _said(text: str) -> str:
    shown = " ".join(text.split())[:_SHOWN]
    return f" and said: {shown}" if shown else ""
