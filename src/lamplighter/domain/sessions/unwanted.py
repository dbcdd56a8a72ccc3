"""Decides about a session of the city that is not wanted: suspended, surplus of a pool, or an orphan."""

from datetime import timedelta

from lamplighter.domain.sessions.actions import AgentState, Decision, Drain, Stop, StopReason, Verdict
from lamplighter.domain.sessions.idle import DrainReason, drain_overdue, draining, overdue_at
from lamplighter.domain.sessions.model import Seen
from lamplighter.domain.sessions.outlook import Outlook, agent_of, pool_of


def decide(outlook: Outlook, seen: Seen) -> Decision:
    agent = agent_of(seen)
    if outlook.wanted.city_suspended or {agent, pool_of(seen)} & outlook.wanted.suspended:
        return _stopping(seen, StopReason.SUSPENDED, AgentState.SUSPENDED)
    if seen.alive and outlook.is_former(seen):
        return _stopping(seen, StopReason.RENAMED, AgentState.STOPPED)
    if pool_of(seen) in outlook.wanted.pools and not seen.alive:
        return _stopping(seen, StopReason.DRAINED if draining(seen) else StopReason.SURPLUS, AgentState.STOPPED)
    if pool_of(seen) in outlook.wanted.pools:
        if outlook.wanted.one_pass and not outlook.is_busy(seen.name):
            return _stopping(seen, StopReason.SURPLUS, AgentState.STOPPED)
        return _surplus(outlook, seen, outlook.wanted.pools[pool_of(seen)])
    return _stopping(seen, StopReason.ORPHAN, AgentState.STOPPED)


def _surplus(outlook: Outlook, seen: Seen, timeout: timedelta) -> Decision:
    """Drain the session, then stop it once it acknowledged, or once the drain timed out.

    A session at work that has not acknowledged is left running.
    """
    agent, marks = agent_of(seen), draining(seen)
    if marks is not None and marks.acknowledged:
        return _stopping(seen, StopReason.DRAINED, AgentState.DRAINING)
    if outlook.is_busy(seen.name):
        return Decision(Verdict(agent, AgentState.RUNNING, "surplus, but at work"))
    if seen.attached:
        return Decision(Verdict(agent, AgentState.RUNNING, "surplus, but somebody is attached"))
    if marks is None:
        verdict = Verdict(agent, AgentState.DRAINING, "surplus", outlook.now + timeout)
        return Decision(verdict, (Drain(seen.name, agent, DrainReason.SURPLUS),))
    if drain_overdue(marks, timeout, outlook.now):
        return _stopping(seen, StopReason.DRAIN_TIMEOUT, AgentState.DRAINING)
    return Decision(Verdict(agent, AgentState.DRAINING, str(marks.reason), overdue_at(marks, timeout)))


def _stopping(seen: Seen, reason: StopReason, state: AgentState) -> Decision:
    agent = agent_of(seen)
    if seen.alive and seen.attached:
        return Decision(Verdict(agent, AgentState.RUNNING, f"{reason}, but somebody is attached"))
    return Decision(Verdict(agent, state, str(reason)), (Stop(seen.name, agent, reason),))
