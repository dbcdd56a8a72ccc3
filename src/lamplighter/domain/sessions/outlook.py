"""The input of the patrol's decisions: wanted sessions, observed sessions, their history, and questions about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.crashes import CrashLimit, SessionHistory
from lamplighter.domain.sessions.drift import Fingerprint
from lamplighter.domain.sessions.idle import STARTUP_GRACE, DrainReason, draining
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.supervise import Strategy, taken_along, without_rings
from lamplighter.kit.records import record

DRAIN_TIMEOUT = timedelta(minutes=5)
DRIFT_TIMEOUT = timedelta(minutes=1)
_BLANK = SessionHistory()


@record
class WantedAgent:
    """One session that should run. `template` is the name of the declared agent, which instances of a pool share."""

    agent: str
    session: SessionName
    template: str = ""
    is_pool: bool = False
    fingerprint: Fingerprint = field(default_factory=dict)
    idle_timeout: timedelta | None = None
    drain_timeout: timedelta = DRAIN_TIMEOUT
    depends_on: tuple[str, ...] = ()
    strategy: Strategy = Strategy.ONE_FOR_ONE

    @property
    def declared(self) -> str:
        return self.template or self.agent


@record
class Wanted:
    """What the configuration asks for: sessions in the order they start, and rules for all other sessions."""

    agents: tuple[WantedAgent, ...] = ()
    pools: Mapping[str, timedelta] = field(default_factory=dict)  # a declared pool, and how long its members may drain
    suspended: frozenset[str] = frozenset()  # declared agents that are suspended, by themselves or with their rig
    city_suspended: bool = False
    limit: CrashLimit = field(default_factory=CrashLimit)
    startup_grace: timedelta = STARTUP_GRACE
    drift_timeout: timedelta = DRIFT_TIMEOUT  # how long a session with changed settings may drain
    one_pass: bool = False  # no patrol follows: drains are not waited for, idleness is ignored


@record
class Sight:
    """All observed sessions of the city, those at work on a bead, and those with an action under way.

    `draining` has those that were draining when they were last seen alive; their marks may be gone with them.
    """

    sessions: Mapping[SessionName, Seen] = field(default_factory=dict)
    busy: frozenset[SessionName] = frozenset()
    under_way: frozenset[SessionName] = frozenset()
    draining: frozenset[SessionName] = frozenset()


History = Mapping[SessionName, SessionHistory]


@dataclass(frozen=True)
class Outlook:
    wanted: Wanted
    sight: Sight
    history: History
    now: datetime

    def past(self, session: SessionName) -> SessionHistory:
        return self.history.get(session, _BLANK)

    def is_busy(self, session: SessionName) -> bool:
        return session in self.sight.busy

    def is_alive(self, session: SessionName) -> bool:
        seen = self.sight.sessions.get(session)
        return seen is not None and seen.alive

    def has_drained(self, session: SessionName) -> bool:
        """Whether the session was asked to finish before it ended."""
        seen = self.sight.sessions.get(session)
        return session in self.sight.draining if seen is None else draining(seen) is not None

    def time_to_drain(self, agent: WantedAgent, reason: DrainReason) -> timedelta:
        return self.wanted.drift_timeout if reason is DrainReason.DRIFT else agent.drain_timeout

    def former_session(self, agent: WantedAgent) -> SessionName | None:
        """A living session of the same agent under another name: the city or the session template was renamed."""
        return next((name for name in self._living.get(agent.agent, ()) if name != agent.session), None)

    def is_former(self, seen: Seen) -> bool:
        """Whether this session, which is not wanted, belongs to an agent that is wanted under another session name."""
        return agent_of(seen) in self._wanted_names

    def waits_for(self, agent: WantedAgent) -> str:
        """The first agent it depends on that is wanted but not up; empty when it may start."""
        for name in self._needs.get(agent.declared, ()):
            instances = self._by_template.get(name, ())
            if instances and not any(self._is_up(one) for one in instances):
                return name
        return ""

    def fallen_dependency(self, agent: WantedAgent) -> str:
        """The dead agent whose strategy stops this one too; empty if there is none."""
        return next((dead for dead, taken in self._taken_along.items() if agent.declared in taken), "")

    def _is_up(self, agent: WantedAgent) -> bool:
        """Alive, without an action under way, and not about to be stopped because of a dead dependency."""
        seen = self.sight.sessions.get(agent.session)
        if seen is None or not seen.alive or agent.session in self.sight.under_way:
            return False
        return seen.attached or not self.fallen_dependency(agent)

    @cached_property
    def _living(self) -> dict[str, list[SessionName]]:
        found: dict[str, list[SessionName]] = {}
        for seen in self.sight.sessions.values():
            if seen.alive and not is_runs(seen):
                found.setdefault(agent_of(seen), []).append(seen.name)
        return found

    @cached_property
    def _wanted_names(self) -> frozenset[str]:
        return frozenset(agent.agent for agent in self.wanted.agents)

    @cached_property
    def _by_template(self) -> dict[str, list[WantedAgent]]:
        found: dict[str, list[WantedAgent]] = {}
        for agent in self.wanted.agents:
            found.setdefault(agent.declared, []).append(agent)
        return found

    @cached_property
    def _needs(self) -> dict[str, tuple[str, ...]]:
        return without_rings({agent.declared: agent.depends_on for agent in self.wanted.agents})

    @cached_property
    def _taken_along(self) -> dict[str, frozenset[str]]:
        """Agents that died since the last patrol, each with the agents its strategy stops; pool instances stop none."""
        return {
            agent.declared: taken_along(agent.declared, self._needs, agent.strategy)
            for agent in self.wanted.agents
            if agent.strategy is not Strategy.ONE_FOR_ONE and not agent.is_pool and self._just_died(agent.session)
        }

    def _just_died(self, session: SessionName) -> bool:
        lives = self.past(session).lives
        ended = bool(lives) and lives[-1].ended_at is None and not self.is_alive(session)
        return ended and not self.has_drained(session)


def former_sessions(wanted: Wanted, sessions: Mapping[SessionName, Seen]) -> frozenset[SessionName]:
    """The living sessions of wanted agents under names that are no longer theirs."""
    names = {agent.agent: agent.session for agent in wanted.agents}
    return frozenset(
        seen.name
        for seen in sessions.values()
        if seen.alive and not is_runs(seen) and names.get(agent_of(seen), seen.name) != seen.name
    )


def pool_of(seen: Seen) -> str:
    return seen.meta.get(meta.POOL, "")


def agent_of(seen: Seen) -> str:
    return seen.meta.get(meta.AGENT, "") or seen.name


def is_runs(seen: Seen) -> bool:
    return bool(seen.meta.get(meta.RUN))
