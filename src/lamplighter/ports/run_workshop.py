"""The builder of what a run's session needs on the machine where it will run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.runs.prompt import FIRST, Turn
from lamplighter.domain.sessions.logins import LoginKey
from lamplighter.domain.sessions.model import SessionSpec
from lamplighter.domain.sessions.presets.model import OwnLog


@dataclass(frozen=True)
class RunOrder:
    """One run to prepare: its plan, its trigger, its working directory, and the URL where its tools are served."""

    run: str
    automation: str
    plan: RunPlan
    trigger: Mapping[str, Any]
    work_dir: Path
    api_url: str | None
    turn: Turn = FIRST
    notes: tuple[int, str] = (0, "")
    """The version and the text of its automation's notes."""
    cursor: str = ""
    """Where its automation's cursor is; empty where it has none yet."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What its workspace gives it, such as ports."""
    by_hand: bool = False
    """A person opens its program in a terminal and goes on with it there."""


@dataclass(frozen=True)
class Prepared:
    """The session to start, and what is in force for the run: preset, version, model, effort, mode, prompt, login."""

    spec: SessionSpec
    in_force: Mapping[str, str]


@dataclass(frozen=True)
class LoginSeen:
    """The login that a plan uses on this machine; `marks` change when somebody signs in."""

    key: LoginKey
    marks: str


class RunWorkshop(Protocol):
    """Called on a thread, because it reads and writes files. Every call may be repeated."""

    def installed(self, command: str, env: Mapping[str, str]) -> bool:
        """Whether the command is on the PATH of a run with that environment."""
        ...

    def prepare(self, city: City, order: RunOrder) -> Prepared:
        """Write the run's files, its token among them, and return the session's specification. Raises LampError."""
        ...

    def login(self, city: City, plan: RunPlan, node: str) -> LoginSeen | None:
        """The login that a run with this plan uses; None for a program that needs none."""
        ...

    def asked(self, city: City, plan: RunPlan) -> bool | None:
        """Ask the program whether it is signed in; None if it cannot be asked, or does not answer in time."""
        ...

    def log_of(self, run: str, log: OwnLog) -> str:
        """The end of the log that the run's program keeps; empty if there is none."""
        ...

    def is_open(self, run: str) -> bool:
        """Whether a person has the run's program open on this machine."""
        ...

    def forget(self, run: str) -> None:
        """Remove the run's files, its token first."""
        ...
