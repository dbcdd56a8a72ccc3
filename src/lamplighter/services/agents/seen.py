"""The list of agents for people and programs: one row each, with its state and the reason for it."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime

from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.variables import rig_of
from lamplighter.domain.city.wanted import Roster
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import AgentState, Verdict
from lamplighter.domain.sessions.crashes import (
    CrashLimit,
    SessionHistory,
    quarantine_reason,
    quarantined_until,
    starts_in_window,
)
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import agent_of, is_runs, pool_of
from lamplighter.kit.records import record
from lamplighter.services import sessions
from lamplighter.services.agents.views import AgentView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host


async def agents_of(host: "Host", now: datetime) -> list[AgentView]:
    """The agents as the patrol sees them; without one in this process, as store and provider show them."""
    patrol, roster = host.patrol, host.roster
    if patrol is not None:
        seen = Known(
            roster, patrol.sight, patrol.histories, patrol.verdicts, now, kept=True, unknown=patrol.unknown_pools
        )
        return agent_views(seen)
    since = now - roster.city.daemon.restart_window
    kept = await host.store.read(sessions.remembered, since=since)
    return agent_views(Known(roster, await host.sessions.seen(), kept.histories, {}, now, kept=False))


@record
class Known:
    """Everything that a list of agents is built from; `kept` is true while a controller looks after them.

    `unknown` are the pools that nobody knows how many instances of are wanted, each with the reason.
    """

    roster: Roster
    sight: Mapping[SessionName, Seen]
    histories: Mapping[SessionName, SessionHistory]
    verdicts: Mapping[SessionName, Verdict]
    now: datetime
    kept: bool
    unknown: Mapping[str, str] = field(default_factory=dict)


def agent_views(known: Known) -> list[AgentView]:
    """Agents in the order of their declaration, a pool's instances together; sessions of no declared agent last."""
    found: list[AgentView] = []
    shown: set[SessionName] = set()
    for agent in known.roster.city.agents:
        for name, session in _instances(known, agent):
            shown.add(session)
            found.append(_row(known, name, session, agent))
    for session, seen in known.sight.items():
        if session not in shown and not is_runs(seen):
            found.append(_row(known, agent_of(seen), session, None))
    return found


def _instances(known: Known, agent: Agent) -> Iterator[tuple[str, SessionName]]:
    """A fixed agent itself; of a pool the instances that are seen, have a verdict or are quarantined, else the pool."""
    names = [name for name, declared in known.roster.declared.items() if declared is agent]
    found = [(name, known.roster.sessions[name]) for name in names]
    if agent.pool is not None:
        found = [
            (name, session) for name, session in found
            if session in known.sight or session in known.verdicts or _held(known, session)
        ] or [(agent.qualified_name, SessionName(""))]  # fmt: skip
    yield from found


def _held(known: Known, session: SessionName) -> bool:
    return _quarantined(known, session) is not None


def _quarantined(known: Known, session: SessionName) -> datetime | None:
    history = known.histories.get(session, SessionHistory())
    return quarantined_until(history, _limit(known), known.now)


def _limit(known: Known) -> CrashLimit:
    daemon = known.roster.city.daemon
    return CrashLimit(daemon.max_restarts, daemon.restart_window)


def _row(known: Known, name: str, session: SessionName, agent: Agent | None) -> AgentView:
    seen, history = known.sight.get(session), known.histories.get(session, SessionHistory())
    state, reason = _state(known, session, seen, agent)
    rig = rig_of(known.roster.city, agent) if agent is not None else None
    pool = agent.qualified_name if agent is not None and agent.pool is not None else None
    until = _quarantined(known, session) if state is AgentState.QUARANTINED else None
    alive = seen if seen is not None and seen.alive else None
    return AgentView(
        name=name,
        rig=rig.name if rig is not None else None,
        pool=pool or (pool_of(seen) or None if seen is not None else None),
        state=state.value,
        reason=reason,
        session=session or None,
        session_id=seen.session_id if seen is not None else None,
        pid=alive.pid if alive is not None else None,
        since=alive.started_at if alive is not None else None,
        starts_in_window=len(starts_in_window(history, _limit(known), known.now)),
        quarantined_until=until,
        last_activity_at=alive.last_activity if alive is not None else None,
        attached=seen is not None and seen.attached,
        exit_status=seen.exit_status if seen is not None else None,
    )


def _state(known: Known, session: SessionName, seen: Seen | None, agent: Agent | None) -> tuple[AgentState, str]:
    verdict = known.verdicts.get(session) if known.kept else None
    if verdict is not None:
        gone = verdict.state is AgentState.RUNNING and (seen is None or not seen.alive)
        return (AgentState.STARTING, "it just ended") if gone else (verdict.state, verdict.reason)
    if seen is not None and seen.alive:
        drains = seen.meta.get(meta.DRAIN) or seen.meta.get(meta.DRAIN_ACK)
        return (AgentState.DRAINING, seen.meta.get(meta.DRAIN_REASON, "")) if drains else (AgentState.RUNNING, "")
    return _down(known, session, seen, agent)


def _down(known: Known, session: SessionName, seen: Seen | None, agent: Agent | None) -> tuple[AgentState, str]:
    if agent is not None and (known.roster.is_suspended(agent) or known.roster.city.workspace.suspended):
        return AgentState.SUSPENDED, "suspended"
    if _quarantined(known, session) is not None:
        return AgentState.QUARANTINED, quarantine_reason(known.histories[session], _limit(known), known.now)
    if seen is not None:
        return AgentState.CRASHED, "its program ended"
    if not known.kept or agent is None or agent.pool is None:
        return AgentState.STOPPED, ""
    if agent.pool.max == 0:
        return AgentState.STOPPED, "its `max` is 0"
    why = known.unknown.get(agent.qualified_name)
    return AgentState.STOPPED, "no demand" if why is None else f"how many are wanted is unknown: {why}"
