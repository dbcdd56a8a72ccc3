"""Builds what a run's session needs on the machine it will live on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lamplighter.domain.city.model import City
from lamplighter.domain.city.run_plan import RunPlan
from lamplighter.domain.sessions.model import SessionSpec


@dataclass(frozen=True)
class RunOrder:
    """One run to be prepared: what it is, what set it off, where it works, and where its tools are served."""

    run: str
    automation: str
    plan: RunPlan
    trigger: Mapping[str, Any]
    work_dir: Path
    api_url: str | None


class RunWorkshop(Protocol):
    """Called on a thread: it reads and writes files. Everything may be repeated."""

    def installed(self, command: str, env: Mapping[str, str]) -> bool:
        """Whether the command is on the path that a run with that environment would have."""
        ...

    def prepare(self, city: City, order: RunOrder) -> SessionSpec:
        """The files of the run are in place afterwards, its token among them. Raises LampError."""
        ...

    def forget(self, run: str) -> None:
        """Remove the run's files, its token first."""
        ...
