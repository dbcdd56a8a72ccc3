"""What the patrol can be told to do, and what it says of each session."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import SessionName


class StartReason(StrEnum):
    INITIAL = "initial start"
    SCALE_UP = "pool scale-up"
    CRASH_RECOVERY = "crash recovery"
    WANTED_AGAIN = "wanted again"


class RestartReason(StrEnum):
    REQUESTED = "restart requested by agent"
    IDLE = "idle timeout"
    DRIFT = "configuration changed"
    DRAINED = "drained"


class StopReason(StrEnum):
    DRAINED = "drained"
    DRAIN_TIMEOUT = "drain timed out"
    SUSPENDED = "suspended"
    SURPLUS = "surplus"
    ORPHAN = "not in the configuration"
    DEPENDENCY = "a dependency died"


@dataclass(frozen=True)
class Start:
    session: SessionName
    agent: str
    reason: StartReason


@dataclass(frozen=True)
class Stop:
    session: SessionName
    agent: str
    reason: StopReason


@dataclass(frozen=True)
class Restart:
    """Stop, then start, then clear the scrollback; a stop that fails is followed by no start."""

    session: SessionName
    agent: str
    reason: RestartReason
    detail: str = ""


@dataclass(frozen=True)
class Drain:
    """Mark it: finish what you do, then acknowledge."""

    session: SessionName
    agent: str
    reason: DrainReason
    detail: str = ""


@dataclass(frozen=True)
class ClearDrain:
    session: SessionName
    agent: str


@dataclass(frozen=True)
class NoteEnd:
    """Its program ended by itself: remember when, and tell it once, with the last of its output where there is any."""

    session: SessionName
    agent: str
    session_id: str
    exit_status: int | None
    has_output: bool


@dataclass(frozen=True)
class Quarantine:
    """It was started too often: tell so, once; it is not started before `until`."""

    session: SessionName
    agent: str
    starts: int
    until: datetime


Action = NoteEnd | Quarantine | ClearDrain | Drain | Stop | Restart | Start


class AgentState(StrEnum):
    RUNNING = "running"
    STARTING = "starting"
    DRAINING = "draining"
    CRASHED = "crashed"
    QUARANTINED = "quarantined"
    SUSPENDED = "suspended"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Verdict:
    """How a session stands, in a person's words; `until` is when the patrol looks at it again by itself."""

    agent: str
    state: AgentState
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    actions: tuple[Action, ...] = ()
