"""Agents as every surface shows them, and the answers of what is done to them. It imports little."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AgentView:
    """An agent, or an instance of a pool, with its state and the reason for it."""

    name: str
    rig: str | None = None
    pool: str | None = None
    state: str = "stopped"
    reason: str = ""
    session: str | None = None
    session_id: str | None = None
    pid: int | None = None
    since: datetime | None = None
    starts_in_window: int = 0
    quarantined_until: datetime | None = None
    last_activity_at: datetime | None = None
    attached: bool = False
    exit_status: int | None = None


@dataclass(frozen=True)
class StartView:
    session_id: str | None
    started_at: datetime
    reason: str
    failure: str | None
    counted: bool
    ended_at: datetime | None
    exit_status: int | None
    end_reason: str | None


@dataclass(frozen=True)
class ActionView:
    """An event about an agent."""

    seq: int
    type: str
    at: datetime
    actor: str
    subject: str | None
    message: str | None
    payload: Any
    run: str | None


@dataclass(frozen=True)
class AgentDetail(AgentView):
    """An agent with its last starts, and the last actions on it with their reasons; a pool with its instances."""

    starts: Sequence[StartView] = ()
    actions: Sequence[ActionView] = ()
    instances: Sequence[AgentView] = ()
    terminal: bool = False
    """Whether its session has a terminal that the console can show."""


@dataclass(frozen=True)
class OutputView:
    name: str
    output: str


@dataclass(frozen=True)
class AttachView:
    """The command that a person's terminal runs to see the session."""

    name: str
    command: Sequence[str]


@dataclass(frozen=True)
class NudgedView:
    name: str
    nudged: bool = True


@dataclass(frozen=True)
class DrainingView:
    name: str
    draining: bool


@dataclass(frozen=True)
class RestartedView:
    """The id of the new session, and that of the one before."""

    name: str
    session_id: str
    before: str


@dataclass(frozen=True)
class KilledView:
    name: str
    killed: bool = True


@dataclass(frozen=True)
class SwitchedView:
    """`changed` is false if it was so already."""

    name: str
    suspended: bool
    changed: bool


@dataclass(frozen=True)
class UnquarantinedView:
    name: str
    quarantined: bool = False


@dataclass(frozen=True)
class DrainCheckView:
    draining: bool


@dataclass(frozen=True)
class AcknowledgedView:
    name: str
    acknowledged: bool = True


@dataclass(frozen=True)
class RequestedView:
    name: str
    requested: bool = True
