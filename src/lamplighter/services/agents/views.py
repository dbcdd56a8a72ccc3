"""Agents as every surface shows them, and the answers of what is done to them. It imports little."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record


@record
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


@record
class StartView:
    session_id: str | None
    started_at: datetime
    reason: str
    failure: str | None
    counted: bool
    ended_at: datetime | None
    exit_status: int | None
    end_reason: str | None


@record
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


@record
class AgentDetail(AgentView):
    """An agent with its last starts, and the last actions on it with their reasons; a pool with its instances."""

    starts: Sequence[StartView] = ()
    actions: Sequence[ActionView] = ()
    instances: Sequence[AgentView] = ()
    terminal: bool = False
    """Whether its session has a terminal that the console can show."""


@record
class OutputView:
    name: str
    output: str


@record
class AttachView:
    """The command that a person's terminal runs to see the session."""

    name: str
    command: Sequence[str]


@record
class NudgedView:
    name: str
    nudged: bool = True


@record
class DrainingView:
    name: str
    draining: bool


@record
class RestartedView:
    """The id of the new session, and that of the one before."""

    name: str
    session_id: str
    before: str


@record
class KilledView:
    name: str
    killed: bool = True


@record
class SwitchedView:
    """`changed` is false if it was so already."""

    name: str
    suspended: bool
    changed: bool


@record
class UnquarantinedView:
    name: str
    quarantined: bool = False


@record
class DrainCheckView:
    draining: bool


@record
class AcknowledgedView:
    name: str
    acknowledged: bool = True


@record
class RequestedView:
    name: str
    requested: bool = True
