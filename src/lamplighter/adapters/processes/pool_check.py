"""Runs a pool's check: a shell command in the pool's directory that prints how many instances are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.adapters.processes.child import Call, Ended, NotStarted, TookTooLong, TooMuchOutput, run_child
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.session_env import session_environment
from lamplighter.domain.city.variables import pool_check, work_dir
from lamplighter.domain.sessions.pools import demand_of
from lamplighter.kit.errors import LampError
from lamplighter.ports.secrets import NoSecrets, SecretSource

LIMIT = timedelta(seconds=30)
_SHOWN = 200
_LONGEST = 1 << 20


class CheckFailed(LampError):
    def __init__(self, pool: str, why: str) -> None:
        super().__init__(
            f"The check of pool `{pool}` {why}; what runs is kept.", hint="Run it by hand in the pool's directory."
        )


@dataclass(frozen=True)
class ShellPoolCheck:
    env: Mapping[str, str]
    limit: timedelta = LIMIT
    secrets: SecretSource = field(default_factory=NoSecrets)

    async def __call__(self, loaded: LoadedCity, agent: Agent) -> int:
        """The number of wanted instances. Raises CheckFailed; at the limit the check is ended with all it started."""
        name, place = agent.qualified_name, work_dir(loaded.city, agent)
        env = session_environment(loaded.city, agent, name, parent=self.env, preset={}, work_dir=place)
        try:
            env = await self.secrets.opened(env)
        except LampError as error:
            raise CheckFailed(name, f"cannot be given its secrets: {error.message.rstrip('.')}") from error
        command = pool_check(loaded.city, agent)
        ended = await self._run(name, command, str(place if place.is_dir() else loaded.city.root), env)
        out = ended.output.decode(errors="replace")
        if ended.exit_code:
            said = ended.complaint.decode(errors="replace") or out
            raise CheckFailed(name, f"ended with status {ended.exit_code}{_said(said)}")
        demand = demand_of(out)
        if demand is None:
            raise CheckFailed(name, f"printed no whole number{_said(out)}")
        return demand

    async def _run(self, pool: str, command: str, place: str, env: Mapping[str, str]) -> Ended:
        call = Call(("/bin/sh", "-c", command), place, env, self.limit, longest_output=_LONGEST, ends_helpers=True)
        try:
            return await run_child(call)
        except NotStarted as error:
            raise CheckFailed(pool, f"did not start: {error.reason}") from error
        except TookTooLong:
            raise CheckFailed(pool, f"took longer than {self.limit.total_seconds():g} s") from None
        except TooMuchOutput:
            raise CheckFailed(pool, f"printed more than {_LONGEST} bytes") from None


def _said(text: str) -> str:
    shown = " ".join(text.split())[:_SHOWN]
    return f" and said: {shown}" if shown else ""
