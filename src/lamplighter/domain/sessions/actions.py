"""The actions and verdicts that the patrol decides on for each session."""

from datetime import datetime
from enum import StrEnum

from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.records import record


class StartReason(StrEnum):
    INITIAL = "initial start"
    SCALE_UP = "pool scale-up"
    CRASH_RECOVERY = "crash recovery"
    WANTED_AGAIN = "wanted again"
    DRAINED = "drained"


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
    RENAMED = "its session has another name now"


@record
class Start:
    session: SessionName
    agent: str
    reason: StartReason


@record
class Stop:
    session: SessionName
    agent: str
    reason: StopReason


@record
class Restart:
    """Stop, then start, then clear the scrollback; if the stop fails, the session is not started."""

    session: SessionName
    agent: str
    reason: RestartReason
    detail: str = ""


@record
class Drain:
    """Mark the session as draining: its agent finishes its work, then acknowledges."""

    session: SessionName
    agent: str
    reason: DrainReason
    detail: str = ""


@record
class ClearDrain:
    session: SessionName
    agent: str


@record
class NoteEnd:
    """The program ended by itself: record when, and report it once, with the end of its output if there is any.

    With `drained` it was asked to finish before: its end is what was wished for and no crash.
    """

    session: SessionName
    agent: str
    session_id: str
    exit_status: int | None
    has_output: bool
    drained: bool = False


@record
class Quarantine:
    """It was started too often: report that once; it is not started again before `until`."""

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


@record
class Verdict:
    """The state of a session, with a readable reason; `until` is when the patrol next looks at it on its own."""

    agent: str
    state: AgentState
    reason: str = ""
    until: datetime | None = None


@record
class Decision:
    verdict: Verdict
    actions: tuple[Action, ...] = ()
