"""Reading about agents: how each is, what it prints. Also what every operation on an agent begins with: finding it.

A command that has the daemon do it loads this module too: what only the doing needs is imported there.
"""

from dataclasses import dataclass, replace

from lamplighter.domain.access import Verb
from lamplighter.domain.events import EventFilter
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.shapes import given
from lamplighter.ports.sessions import HasTerminal
from lamplighter.services.agents.views import (
    ActionView,
    AgentDetail,
    AgentView,
    AttachView,
    DrainCheckView,
    OutputView,
    StartView,
)
from lamplighter.services.context import Context
from lamplighter.services.operation import LOOK_S, Http, effect
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.agents.naming import Named
    from lamplighter.services.host import Host


@dataclass(frozen=True)
class ListAgents:
    """The agents there are, and how each is."""

    rig: str | None = given("Only those of this rig.", default=None)
    state: str | None = given("Only those in this state.", default=None)


@dataclass(frozen=True)
class ShowAgent:
    """How an agent is, and what was done to it lately, and why."""

    name: str = given("The agent.", positional=True, names="agent")
    limit: int = given("How many actions.", default=10, least=1, most=1000)


@dataclass(frozen=True)
class PeekAgent:
    """The last lines of its screen or output."""

    name: str = given("The agent.", positional=True, names="agent")
    lines: int = given("0 for all.", default=50, least=0, most=100_000)


@dataclass(frozen=True)
class AgentLogs:
    """Its output, of the present or the last session."""

    name: str = given("The agent.", positional=True, names="agent")
    lines: int = given("0 for all.", default=200, least=0, most=100_000)


@dataclass(frozen=True)
class AttachAgent:
    """See it live in this terminal; with tmux, type to it too. The patrol spares it meanwhile."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class DrainCheck:
    """Ends with 0 if the agent is asked to finish, else with 1; prints nothing."""

    name: str | None = given("The agent; inside a session its own.", default=None, positional=True, names="agent")
    session: str | None = given("The name of the session from which it asks about itself.", default=None)


async def list_agents(host: "Host", ask: ListAgents, ctx: Context) -> list[AgentView]:
    return [one for one in await agents(host, ctx) if ask.rig in {None, one.rig} and ask.state in {None, one.state}]


async def show_agent(host: "Host", ask: ShowAgent, ctx: Context) -> AgentDetail:
    """Raises NotFound."""
    who = await named(host, ask.name, ctx)
    absent = AgentView(who.name, session=who.session or None)
    known = await agents(host, ctx)
    if is_pool(who):
        members = [one for one in known if one.pool == who.name and one.session]
        view = _pool(who, members, next((one for one in known if one.name == who.name), absent))
    else:
        members = []
        view = next((one for one in known if one.name == who.name), absent)
    starts, actions = await host.store.read(_story, who, ask.limit)
    terminal = bool(who.session) and isinstance(host.sessions, HasTerminal)
    return AgentDetail(**view.__dict__, starts=starts, actions=actions, instances=members, terminal=terminal)


def is_pool(who: "Named") -> bool:
    """Whether a pool of several is meant, and not one of its instances."""
    return who.agent is not None and who.agent.pool is not None and not who.session


def _pool(who: "Named", members: list[AgentView], alone: AgentView) -> AgentView:
    """The pool as one: at work if one of its instances is, else as the first of them."""
    if not members or who.agent is None or who.agent.pool is None:
        return replace(alone, pool=who.name)
    bounds = who.agent.pool
    running = sum(one.state == "running" for one in members)
    state = "running" if running else members[0].state
    told = f"{running} running, of {bounds.min} to {bounds.max}"
    return AgentView(who.name, rig=members[0].rig, pool=who.name, state=state, reason=told)


def _story(tx: Tx, who: "Named", limit: int) -> tuple[list[StartView], list[ActionView]]:
    starts = [
        StartView(
            one.session_id or None,
            one.started_at,
            one.reason,
            one.failure,
            one.counted,
            one.ended_at,
            one.exit_status,
            one.end_reason,
        )
        for one in tx.agents.latest(who.session, limit=limit)
    ]
    events = tx.events.latest(EventFilter(type="agent.*", subject=who.name), limit=limit)
    return starts, [
        ActionView(one.seq, one.type, one.at, one.actor, one.subject, one.message, one.payload, one.run)
        for one in events
    ]


async def peek_agent(host: "Host", ask: PeekAgent | AgentLogs, ctx: Context) -> OutputView:
    """Raises NotFound."""
    who = await named(host, ask.name, ctx)
    mask = await host.secrets.mask()
    if not is_pool(who):
        return OutputView(ask.name, mask(await host.sessions.peek(who.session, ask.lines)))
    members = [one for one in await agents(host, ctx) if one.pool == who.name and one.session]
    if not members:
        return OutputView(ask.name, f"No instance of the pool {who.name} has a session.")
    parts = [(one.name, mask(await host.sessions.peek(SessionName(one.session or ""), ask.lines))) for one in members]
    return OutputView(ask.name, "\n\n".join(f"── {name} ──\n{text.rstrip()}" for name, text in parts))


async def attach_agent(host: "Host", ask: AttachAgent, ctx: Context) -> AttachView:
    """Raises NotFound, SessionUnknown."""
    who = await named(host, ask.name, ctx)
    return AttachView(ask.name, await host.sessions.attach_command(who.session))


async def drain_check(host: "Host", ask: DrainCheck, ctx: Context) -> DrainCheckView:
    """Raises NotFound."""
    who = await own(host, ask.name, ask.session, ctx)
    return DrainCheckView(bool(await host.sessions.get_meta(who.session, meta.DRAIN)))


async def agents(host: "Host", ctx: Context) -> list[AgentView]:
    from lamplighter.services.agents.seen import agents_of

    return await agents_of(host, ctx.now)


async def named(host: "Host", name: str, ctx: Context) -> "Named":
    from lamplighter.services.agents import naming

    return await naming.named(host, name, ctx.actor.rig, ctx.now)


async def own(host: "Host", name: str | None, session: str | None, ctx: Context) -> "Named":
    from lamplighter.services.agents import naming

    return await naming.own(host, name, session, ctx.actor.rig, ctx.now)


LIST = effect(
    "agent.list", Verb.READ, ListAgents, list[AgentView], list_agents, here_after=LOOK_S, http=Http("GET", "/agents")
)
SHOW = effect(
    "agent.show", Verb.READ, ShowAgent, AgentDetail, show_agent, here_after=LOOK_S, http=Http("GET", "/agents/{name}")
)
PEEK = effect(
    "agent.peek",
    Verb.READ,
    PeekAgent,
    OutputView,
    peek_agent,
    here_after=LOOK_S,
    http=Http("GET", "/agents/{name}/peek"),
)
LOGS = effect(
    "agent.logs",
    Verb.READ,
    AgentLogs,
    OutputView,
    peek_agent,
    here_after=LOOK_S,
    http=Http("GET", "/agents/{name}/logs"),
)
ATTACH = effect("agent.attach", Verb.CONTROL_AGENTS, AttachAgent, AttachView, attach_agent, here_after=LOOK_S)
DRAIN_CHECK = effect(
    "agent.drain-check",
    Verb.READ,
    DrainCheck,
    DrainCheckView,
    drain_check,
    patient=True,
    here_after=LOOK_S,
    http=Http("GET", "/agents/{name}/drain-check"),
)
