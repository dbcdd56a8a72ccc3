"""The status of a city as every surface shows it. It imports little: short commands use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record
from lamplighter.services.agents.views import AgentView


@record
class DescriptorsView:
    """The file descriptors of a process."""

    open: int | None
    limit: int


@dataclass(frozen=True)
class ControllerView:
    """The controller; by default that of a city which is not running.

    `died_at` is the last sign of life of one that ended without being stopped.
    """

    running: bool = False
    pid: int | None = None
    since: datetime | None = None
    last_tick_at: datetime | None = None
    api: str | None = None
    config_error: str | None = None
    descriptors: DescriptorsView | None = None
    problems: Mapping[str, str] = field(default_factory=dict)
    died_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class RunningController(ControllerView):
    """A controller that answered."""

    version: str


@record
class ProcessView:
    """A live process of a node."""

    kind: str
    pid: int
    host: str
    since: datetime
    rigs: Sequence[str]


@record
class NodeView:
    name: str
    state: str
    since: datetime
    place: str
    rigs: Sequence[str]
    processes: Sequence[ProcessView]


@record
class StatusView:
    city: str
    root: str
    paused: bool
    suspended: bool
    controller: RunningController | ControllerView
    agents: Sequence[AgentView]
    nodes: Sequence[NodeView]
    runs: Mapping[str, int]
    attention: int
    next: Sequence[Mapping[str, Any]]
    under_way: Sequence[Mapping[str, Any]]
    """The newest runs that are under way, and when each began."""
    failures: Sequence[Mapping[str, Any]]
    """The last runs of the week that failed, and when each ended."""
    beads: Mapping[str, int]
    store: str
    last_event: str | None
    logins: Sequence[Mapping[str, Any]] = ()
    """The logins of agent programs that keep runs waiting, each with what to do."""
