"""The finalizer's verdict on a run under way: leave it, fail it, or time it out. One table, first match wins."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from lamplighter.domain.runs.budget import Limits, Over, Spent, exceeded
from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.durations import format_duration

IDLE = timedelta(minutes=30)


class SessionState(StrEnum):
    RUNNING = "running"
    ENDED = "ended"
    PAUSED = "paused"
    MISSING = "missing"


@dataclass(frozen=True)
class SessionSeen:
    """What is known of a run's session; `alive` is None if that is unknown."""

    state: SessionState
    alive: bool | None = None
    last_activity: datetime | None = None
    exit_status: int | None = None
    stop_reason: str = ""


@dataclass(frozen=True)
class Policy:
    """After `idle` without activity a run is reported as quiet; after `idle_timeout`, if set, it is ended."""

    idle: timedelta = IDLE
    idle_timeout: timedelta | None = None
    limits: Limits = field(default_factory=Limits)
    stuck_after: int = 0
    """So often in a row an agent may make the same call with the same result; 0 for any number."""


@dataclass(frozen=True)
class Leave:
    """`quiet_since` is set for a living run that has long been silent: it is reported, but not ended."""

    quiet_since: datetime | None = None


@dataclass(frozen=True)
class Fail:
    reason: str
    error: str
    stop_session: bool = False


@dataclass(frozen=True)
class TimeOut:
    """The deadline has passed; the session is stopped if the run has one."""

    reason: str = "deadline_exceeded"
    stop_session: bool = True


@dataclass(frozen=True)
class Asks:
    """Its program stands at a permission prompt of its own, which nobody there can answer."""

    what: str
    reason: str = "permission"


Verdict = Leave | Fail | TimeOut | Asks


def overdue(run: Run, now: datetime) -> bool:
    return run.deadline_at is not None and run.deadline_at < now


def verdict(
    run: Run, session: SessionSeen | None, now: datetime, policy: Policy, *, spent: Spent | None = None
) -> Verdict:
    """`session` is None if it could not be queried. The deadline applies in every state that is not an end state."""
    if run.ended or run.taken_by is not None:  # while a person has it, its clock stands
        return Leave()
    if run.state is not RunState.RUNNING:
        return TimeOut(stop_session=False) if overdue(run, now) else Leave()
    if run.session_id is None:
        return _without_session(run, now, policy)
    if overdue(run, now) or run.pending is not None:  # a verification under way says how the run ends
        return TimeOut() if overdue(run, now) else Leave()
    over = exceeded(policy.limits, spent or Spent(), run.started_at, now - (run.stood or timedelta(0)))
    if over is not None:
        return _over_budget(over)
    return Leave() if session is None else _by_session(run, session, now, policy)


def _without_session(run: Run, now: datetime, policy: Policy) -> Verdict:
    """The run's start was interrupted or is still being made; with a live lease a worker is making it.

    After a crash the start is resumed, so the run fails only past its deadline, or when no worker has resumed it for
    `policy.idle`.
    """
    if overdue(run, now) or (not run.lease.live(now) and _quiet(run.last_activity_at, now, policy.idle)):
        return Fail("missing_session", "It was running without a session.")
    return Leave()


def _by_session(run: Run, session: SessionSeen, now: datetime, policy: Policy) -> Verdict:
    match session.state:
        case SessionState.ENDED if run.completion_id is not None:
            return Leave()
        case SessionState.ENDED:
            return Fail("no_completion", _ended_without(session))
        case SessionState.RUNNING if session.alive is False:
            return Fail("sandbox_dead", "Its session is there, but the program in it is dead.", stop_session=True)
        case SessionState.RUNNING:
            return _by_silence(run, session, now, policy)
        case _:
            return Fail(f"session_state_{session.state}", f"Its session is {session.state}.", stop_session=True)


def _by_silence(run: Run, session: SessionSeen, now: datetime, policy: Policy) -> Verdict:
    """A session whose provider does not know its last activity is never ended for silence."""
    heard = max((at for at in (run.last_activity_at, session.last_activity) if at is not None), default=None)
    limit = policy.idle_timeout
    if limit is not None and session.last_activity is not None and _quiet(heard, now, limit):
        return Fail("idle", f"Its session said nothing for {format_duration(limit)}.", stop_session=True)
    return Leave(quiet_since=heard if _quiet(heard, now, policy.idle) else None)


def _over_budget(over: Over) -> Fail:
    return Fail(over.reason, over.message, stop_session=True)


def _ended_without(session: SessionSeen) -> str:
    exit_code = f" with exit code {session.exit_status}" if session.exit_status is not None else ""
    why = f" ({session.stop_reason})" if session.stop_reason else ""
    return f"The program ended{exit_code}{why} without completing the run."


def _quiet(heard: datetime | None, now: datetime, span: timedelta) -> bool:
    return heard is not None and now - heard > span
