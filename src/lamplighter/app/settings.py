"""What the environment and the flags say: the one place that reads them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lamplighter.kit import crash

DEFAULT_ACTOR = "human"


@dataclass(frozen=True)
class Settings:
    """`env` is handed on whole only to the configuration, whose `LAMP_*` overrides are its own."""

    cwd: Path
    city: Path | None
    actor: str
    run: str | None
    env: Mapping[str, str]


def from_environment(city: str | None = None) -> Settings:
    """Flags win over the environment; inside a session the environment says who acts, and in which run."""
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


def _arm_crash_point(text: str) -> None:
    """`store.before_commit` or `store.before_commit:3`, for crash tests: which point kills, after how many passes."""
    if text:
        point, _, passes = text.partition(":")
        crash.arm(point, passes=int(passes or 0))
