"""The patrol's decision: computes actions from wanted sessions, observed sessions, their history and the time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lamplighter.domain.sessions import living, missing, unwanted
from lamplighter.domain.sessions.actions import Action, AgentState, Decision, Verdict
from lamplighter.domain.sessions.model import SessionName
from lamplighter.domain.sessions.outlook import History, Outlook, Sight, Wanted, WantedAgent, is_runs


@dataclass(frozen=True)
class Plan:
    """Actions in the order they are recorded; `wake_at` is when to decide again if nothing wakes the patrol before."""

    actions: tuple[Action, ...] = ()
    verdicts: Mapping[SessionName, Verdict] = field(default_factory=dict)
    wake_at: datetime | None = None


def plan(wanted: Wanted, seen: Sight, history: History, now: datetime) -> Plan:
    """At most one start, stop, restart or drain for each session, and none for those with an action under way.

    Sessions of runs are ignored. Living sessions that a person is attached to are not drained, stopped or restarted.
    Unwanted sessions come last, so that wanted ones are started first.
    """
    decided = dict(_decisions(Outlook(wanted, seen, history, now)))
    verdicts = {session: decision.verdict for session, decision in decided.items()}
    wakes = [verdict.until for verdict in verdicts.values() if verdict.until is not None and verdict.until > now]
    actions = tuple(action for decision in decided.values() for action in decision.actions)
    return Plan(actions, verdicts, min(wakes, default=None))


def _decisions(outlook: Outlook) -> Iterator[tuple[SessionName, Decision]]:
    agents = () if outlook.wanted.city_suspended else outlook.wanted.agents
    wanted = {agent.session: agent for agent in agents if agent.declared not in outlook.wanted.suspended}
    for agent in wanted.values():
        yield agent.session, _for_wanted(outlook, agent)
    for session in outlook.sight.sessions.values():
        if session.name not in wanted and session.name not in outlook.sight.under_way and not is_runs(session):
            yield session.name, unwanted.decide(outlook, session)


def _for_wanted(outlook: Outlook, agent: WantedAgent) -> Decision:
    if agent.session in outlook.sight.under_way:
        return Decision(Verdict(agent.agent, AgentState.STARTING, "under way"))
    seen = outlook.sight.sessions.get(agent.session)
    if seen is not None and seen.alive:
        return living.decide(outlook, agent, seen)
    return missing.decide(outlook, agent, seen)
