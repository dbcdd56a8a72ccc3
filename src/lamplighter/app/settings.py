"""Settings from environment and flags; the only module that reads `os.environ`."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from lamplighter.kit import crash
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import record

DEFAULT_ACTOR = "human"
STORE_WAIT = timedelta(seconds=60)


@record
class Settings:
    """`env` is the whole environment: the configuration takes its `LAMP_*` overrides from it, programs inherit it."""

    cwd: Path
    city: Path | None
    actor: str
    run: str | None
    env: Mapping[str, str]

    @property
    def session(self) -> str | None:
        """The id of the session in which this process runs, if it is one of the city's."""
        return self.env.get("LAMP_SESSION_ID") or None

    def completion(self, run: str) -> str | None:
        """The id under which that run is to be completed, if this process belongs to it."""
        return self.env.get("LAMP_COMPLETION_ID") or None if run == self.run else None

    @property
    def agent(self) -> str | None:
        """The agent in whose session this process runs, if it is one's."""
        return self.env.get("LAMP_AGENT") or self.env.get("GC_AGENT") or None

    @property
    def rig(self) -> str | None:
        """The rig in which this process works, if it is an agent's."""
        return self.env.get("LAMP_RIG") or self.env.get("GC_RIG") or None


def from_environment(city: str | None = None) -> Settings:
    """Flags override the environment; inside a session the environment names the actor and the run."""
    env = dict(os.environ)
    named = city or env.get("LAMP_CITY") or env.get("GC_CITY")
    _arm_crash_point(env.get("LAMP_CRASH_AT", ""))
    return Settings(
        cwd=Path.cwd(),
        city=Path(named) if named else None,
        actor=env.get("LAMP_ACTOR") or env.get("LAMP_AGENT") or env.get("GC_AGENT") or DEFAULT_ACTOR,
        run=env.get("LAMP_RUN_ID") or None,
        env=env,
    )


def wants_no_colour() -> bool:
    """Whether the environment asks for texts without colours, by NO_COLOR or for a terminal that has none."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def store_wait(env: Mapping[str, str]) -> float:
    """How many seconds commands that agents call wait for an unreachable database. Raises UsageError."""
    text = env.get("LAMP_STORE_WAIT", "")
    if not text:
        return STORE_WAIT.total_seconds()
    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise UsageError(f"LAMP_STORE_WAIT: {error}.", hint="Such as `60s`; `0s` does not wait.") from error


def _arm_crash_point(text: str) -> None:
    """For crash tests: `store.before_commit:3` names the point that kills the process, and after how many passes."""
    if text:
        point, _, passes = text.partition(":")
        crash.arm(point, passes=int(passes or 0))
