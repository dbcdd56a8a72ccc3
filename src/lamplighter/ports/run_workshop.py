"""The builder of what a run's session needs on the machine where it will run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.sessions.model import SessionSpec


@dataclass(frozen=True)
class RunOrder:
    """One run to prepare: its plan, its trigger, its working directory, and the URL where its tools are served."""

    run: str
    automation: str
    plan: RunPlan
    trigger: Mapping[str, Any]
    work_dir: Path
    api_url: str | None


class RunWorkshop(Protocol):
    """Called on a thread, because it reads and writes files. Every call may be repeated."""

    def installed(self, command: str, env: Mapping[str, str]) -> bool:
        """Whether the command is on the PATH of a run with that environment."""
        ...

    def prepare(self, city: City, order: RunOrder) -> SessionSpec:
        """Write the run's files, its token among them, and return the session's specification. Raises LampError."""
        ...

    def forget(self, run: str) -> None:
        """Remove the run's files, its token first."""
        ...
