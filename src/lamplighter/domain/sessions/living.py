"""Decides about a wanted session that is alive: keep, drain, restart or stop it; the first reason that applies wins."""

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import (
    Action,
    AgentState,
    ClearDrain,
    Decision,
    Drain,
    Restart,
    RestartReason,
    Stop,
    StopReason,
    Verdict,
)
from lamplighter.domain.sessions.drift import drifted_fields
from lamplighter.domain.sessions.idle import Draining, DrainReason, drain_overdue, draining, idle_at, overdue_at
from lamplighter.domain.sessions.model import Seen
from lamplighter.domain.sessions.outlook import Outlook, WantedAgent


def decide(outlook: Outlook, agent: WantedAgent, seen: Seen) -> Decision:
    marks = draining(seen)
    action = _undrain(agent, seen, marks)
    if action is None and not seen.attached:
        action = _once(outlook, agent, seen, marks) if outlook.wanted.one_pass else _kept(outlook, agent, seen, marks)
    verdict = _verdict(outlook, agent, seen, marks, action)
    return Decision(verdict, () if action is None else (action,))


def _kept(outlook: Outlook, agent: WantedAgent, seen: Seen, marks: Draining | None) -> Action | None:
    return (
        _after_dependency(outlook, agent)
        or _restart_request(agent, seen)
        or _drained(outlook, agent, marks)
        or _idle(outlook, agent, seen)
        or _drift(agent, seen, marks)
    )


def _once(outlook: Outlook, agent: WantedAgent, seen: Seen, marks: Draining | None) -> Action | None:
    """For a single pass without a running city: a drifted session that is not at work is restarted now.

    Idle sessions and restart requests are left alone.
    """
    changed = drifted_fields(seen, agent.fingerprint)
    if changed and not outlook.is_busy(agent.session) and (marks is None or marks.reason is not DrainReason.PERSON):
        return Restart(agent.session, agent.agent, RestartReason.DRIFT, ", ".join(changed))
    return _after_dependency(outlook, agent) or _drained(outlook, agent, marks)


def _undrain(agent: WantedAgent, seen: Seen, marks: Draining | None) -> Action | None:
    """Clear the drain of a surplus session that is wanted again, and of a drift that was reverted.

    A drain that a person asked for or that was acknowledged is not cleared.
    """
    if marks is None or marks.acknowledged or marks.reason is DrainReason.PERSON:
        return None
    if marks.reason is DrainReason.DRIFT and drifted_fields(seen, agent.fingerprint):
        return None
    return ClearDrain(agent.session, agent.agent)


def _after_dependency(outlook: Outlook, agent: WantedAgent) -> Action | None:
    if outlook.fallen_dependency(agent):
        return Stop(agent.session, agent.agent, StopReason.DEPENDENCY)
    return None


def _restart_request(agent: WantedAgent, seen: Seen) -> Action | None:
    if seen.meta.get(meta.RESTART_REQUESTED):
        return Restart(agent.session, agent.agent, RestartReason.REQUESTED)
    return None


def _drained(outlook: Outlook, agent: WantedAgent, marks: Draining | None) -> Action | None:
    """Restart a session that acknowledged its drain, or whose drain timed out while it is not at work.

    It is restarted, not stopped, because it is still wanted.
    """
    if marks is None:
        return None
    timeout = outlook.time_to_drain(agent, marks.reason)
    overdue = drain_overdue(marks, timeout, outlook.now) and not outlook.is_busy(agent.session)
    if not marks.acknowledged and not overdue:
        return None
    reason = RestartReason.DRIFT if marks.reason is DrainReason.DRIFT else RestartReason.DRAINED
    return Restart(agent.session, agent.agent, reason, "" if marks.acknowledged else "drain timed out")


def _idle(outlook: Outlook, agent: WantedAgent, seen: Seen) -> Action | None:
    at = idle_at(seen, agent.idle_timeout, grace=outlook.wanted.startup_grace)
    if at is not None and outlook.now > at:
        return Restart(agent.session, agent.agent, RestartReason.IDLE)
    return None


def _drift(agent: WantedAgent, seen: Seen, marks: Draining | None) -> Action | None:
    changed = drifted_fields(seen, agent.fingerprint)
    if changed and marks is None:
        return Drain(agent.session, agent.agent, DrainReason.DRIFT, ", ".join(changed))
    return None


def _verdict(
    outlook: Outlook, agent: WantedAgent, seen: Seen, marks: Draining | None, action: Action | None
) -> Verdict:
    match action:
        case Restart(reason=reason) | Stop(reason=reason):
            return Verdict(agent.agent, AgentState.STARTING, str(reason))
        case Drain(reason=reason):
            timeout = outlook.time_to_drain(agent, reason)
            return Verdict(agent.agent, AgentState.DRAINING, str(reason), outlook.now + timeout)
        case _:
            pass
    if marks is not None and not isinstance(action, ClearDrain):
        until = overdue_at(marks, outlook.time_to_drain(agent, marks.reason))
        return Verdict(agent.agent, AgentState.DRAINING, str(marks.reason), until)
    if outlook.wanted.one_pass:
        return Verdict(agent.agent, AgentState.RUNNING, _left(agent, seen))
    idle = idle_at(seen, agent.idle_timeout, grace=outlook.wanted.startup_grace)
    return Verdict(agent.agent, AgentState.RUNNING, "", idle)


def _left(agent: WantedAgent, seen: Seen) -> str:
    """What a single pass leaves undone for this session; empty if nothing."""
    if changed := drifted_fields(seen, agent.fingerprint):
        why = "somebody is attached" if seen.attached else "it is at work"
        return f"configuration changed ({', '.join(changed)}), but {why}"
    return "it asks for a restart, which a running city carries out" if seen.meta.get(meta.RESTART_REQUESTED) else ""
