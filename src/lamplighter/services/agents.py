"""The list of agents for people and programs: one row each, with its state and the reason for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.variables import rig_of
from lamplighter.domain.city.wanted import Roster
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState, Verdict
from lamplighter.domain.sessions.crashes import CrashLimit, SessionHistory, quarantined_until, starts_in_window
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import agent_of, is_runs, pool_of
from lamplighter.kit.clock import rfc3339


@dataclass(frozen=True)
class View:
    """Everything that a list of agents is built from; `kept` is true while a controller looks after them."""

    roster: Roster
    sight: Mapping[SessionName, Seen]
    histories: Mapping[SessionName, SessionHistory]
    verdicts: Mapping[SessionName, Verdict]
    now: datetime
    kept: bool


def agent_rows(view: View) -> list[dict[str, Any]]:
    """Agents in the order of their declaration, a pool's instances together; sessions of no declared agent last."""
    rows: list[dict[str, Any]] = []
    shown: set[SessionName] = set()
    for agent in view.roster.city.agents:
        for name, session in _instances(view, agent):
            shown.add(session)
            rows.append(_row(view, name, session, agent))
    for session, seen in view.sight.items():
        if session not in shown and not is_runs(seen):
            rows.append(_row(view, agent_of(seen), session, None))
    return rows


def _instances(view: View, agent: Agent) -> Iterator[tuple[str, SessionName]]:
    """A fixed agent itself; of a pool the instances that are seen, have a verdict or are quarantined, else the pool."""
    names = [name for name, declared in view.roster.declared.items() if declared is agent]
    found = [(name, view.roster.sessions[name]) for name in names]
    if agent.pool is not None:
        found = [
            (name, session) for name, session in found
            if session in view.sight or session in view.verdicts or _held(view, session)
        ] or [(agent.qualified_name, SessionName(""))]  # fmt: skip
    yield from found


def _held(view: View, session: SessionName) -> bool:
    return _quarantined(view, session) is not None


def _quarantined(view: View, session: SessionName) -> datetime | None:
    history = view.histories.get(session, SessionHistory())
    return quarantined_until(history, _limit(view), view.now)


def _limit(view: View) -> CrashLimit:
    daemon = view.roster.city.daemon
    return CrashLimit(daemon.max_restarts, daemon.restart_window)


def _row(view: View, name: str, session: SessionName, agent: Agent | None) -> dict[str, Any]:
    seen, history = view.sight.get(session), view.histories.get(session, SessionHistory())
    state, reason = _state(view, session, seen, agent)
    rig = rig_of(view.roster.city, agent) if agent is not None else None
    pool = agent.qualified_name if agent is not None and agent.pool is not None else None
    until = _quarantined(view, session) if state is AgentState.QUARANTINED else None
    return {
        "name": name,
        "rig": rig.name if rig is not None else None,
        "pool": pool or (pool_of(seen) or None if seen is not None else None),
        "state": state.value,
        "reason": reason,
        "session": session or None,
        "session_id": seen.session_id if seen is not None else None,
        "pid": seen.pid if seen is not None and seen.alive else None,
        "since": _time(seen.started_at if seen is not None and seen.alive else None),
        "starts_in_window": len(starts_in_window(history, _limit(view), view.now)),
        "quarantined_until": _time(until),
        "last_activity_at": _time(seen.last_activity if seen is not None and seen.alive else None),
        "attached": seen is not None and seen.attached,
        "exit_status": seen.exit_status if seen is not None else None,
    }


def _state(view: View, session: SessionName, seen: Seen | None, agent: Agent | None) -> tuple[AgentState, str]:
    verdict = view.verdicts.get(session) if view.kept else None
    if verdict is not None:
        gone = verdict.state is AgentState.RUNNING and (seen is None or not seen.alive)
        return (AgentState.STARTING, "it just ended") if gone else (verdict.state, verdict.reason)
    if seen is not None and seen.alive:
        drains = seen.meta.get(meta.DRAIN) or seen.meta.get(meta.DRAIN_ACK)
        return (AgentState.DRAINING, seen.meta.get(meta.DRAIN_REASON, "")) if drains else (AgentState.RUNNING, "")
    return _down(view, session, seen, agent)


def _down(view: View, session: SessionName, seen: Seen | None, agent: Agent | None) -> tuple[AgentState, str]:
    if agent is not None and (view.roster.is_suspended(agent) or view.roster.city.workspace.suspended):
        return AgentState.SUSPENDED, "suspended"
    if _quarantined(view, session) is not None:
        return AgentState.QUARANTINED, "started too often"
    if seen is not None:
        return AgentState.CRASHED, "its program ended"
    idle_pool = view.kept and agent is not None and agent.pool is not None
    return AgentState.STOPPED, "no demand" if idle_pool else ""


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
