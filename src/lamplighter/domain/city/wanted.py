"""Which sessions a city wants: its fixed agents, and for each pool as many instances as demand and bounds require."""

from collections.abc import Iterator, Mapping
from dataclasses import field

from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.model import Agent, City
from lamplighter.domain.city.names import instance_names
from lamplighter.domain.city.variables import rig_of, session_name
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.crashes import CrashLimit
from lamplighter.domain.sessions.drift import Fingerprint
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.outlook import DRAIN_TIMEOUT, Wanted, WantedAgent
from lamplighter.domain.sessions.pools import Bounds, wanted_instances
from lamplighter.domain.sessions.supervise import Strategy
from lamplighter.kit.records import record


@record
class Roster:
    """A city's agents with everything derived from the configuration alone, computed once per configuration."""

    loaded: LoadedCity
    fingerprints: Mapping[str, Fingerprint]
    sessions: Mapping[str, SessionName]  # of every possible instance, by its name
    declared: Mapping[str, Agent] = field(default_factory=dict)  # by the instance's name

    @property
    def city(self) -> City:
        return self.loaded.city

    @property
    def pools(self) -> tuple[Agent, ...]:
        return tuple(agent for agent in self.city.agents if agent.pool is not None)

    def is_suspended(self, agent: Agent) -> bool:
        rig = rig_of(self.city, agent)
        return agent.suspended or (rig is not None and rig.suspended)


def roster(loaded: LoadedCity) -> Roster:
    """The roster of a loaded city. Raises TemplateError for a session template that cannot be expanded."""
    agents = loaded.city.agents
    declared = {name: agent for agent in agents for name in instance_names(agent)}
    return Roster(
        loaded,
        {agent.qualified_name: loaded.fingerprint(agent).fields for agent in agents},
        {name: SessionName(session_name(loaded.city, name)) for name in declared},
        declared,
    )


def wanted(
    known: Roster, demand: Mapping[str, int | None], seen: Mapping[SessionName, Seen], busy: frozenset[str]
) -> Wanted:
    """The sessions to run. `demand` has a number for each pool whose demand is known; `busy` are instances at work on
    a bead.
    """
    city = known.city
    limits = city.daemon
    return Wanted(
        agents=tuple(
            _wanted(known, agent, name)
            for agent in city.agents
            if not known.is_suspended(agent)
            for name in _instances(agent, demand, seen, busy)
        ),
        pools={agent.qualified_name: agent.pool.drain_timeout for agent in city.agents if agent.pool is not None},
        suspended=frozenset(agent.qualified_name for agent in city.agents if known.is_suspended(agent)),
        city_suspended=city.workspace.suspended,
        limit=CrashLimit(limits.max_restarts, limits.restart_window),
        startup_grace=limits.startup_grace,
        drift_timeout=limits.drift_timeout,
    )


def _wanted(known: Roster, agent: Agent, name: str) -> WantedAgent:
    return WantedAgent(
        agent=name,
        session=known.sessions.get(name) or SessionName(session_name(known.city, name)),
        template=agent.qualified_name,
        is_pool=agent.pool is not None,
        fingerprint=known.fingerprints[agent.qualified_name],
        idle_timeout=agent.idle_timeout,
        drain_timeout=agent.pool.drain_timeout if agent.pool is not None else DRAIN_TIMEOUT,
        depends_on=_qualified(known.city, agent),
        strategy=Strategy(known.city.daemon.strategy),
    )


def _instances(
    agent: Agent, demand: Mapping[str, int | None], seen: Mapping[SessionName, Seen], busy: frozenset[str]
) -> tuple[str, ...]:
    if agent.pool is None:
        return (agent.qualified_name,)
    running = dict(_running(agent, seen))
    bounds = Bounds(agent.pool.min, agent.pool.max)
    at_work = frozenset(name for name in running if name in busy)
    return wanted_instances(agent.qualified_name, bounds, demand.get(agent.qualified_name), running, at_work)


def _running(agent: Agent, seen: Mapping[SessionName, Seen]) -> Iterator[tuple[str, Seen]]:
    for session in seen.values():
        if session.meta.get(meta.POOL) == agent.qualified_name:
            yield session.meta.get(meta.AGENT, session.name), session


def _qualified(city: City, agent: Agent) -> tuple[str, ...]:
    """`depends_on` as qualified names; a name that is no agent of the city is taken as one of the agent's own `dir`."""
    return tuple(name if city.agent(name) is not None else f"{agent.dir}/{name}" for name in agent.depends_on)
