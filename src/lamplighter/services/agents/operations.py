"""What people, programs and agents can ask about agents and have done to them.

A command that has the daemon do it loads this module too: what only the doing needs is imported there.
"""

import shlex
from dataclasses import dataclass
from datetime import timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.events import NewEvent
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import Seen
from lamplighter.kit.errors import Conflict, NotFound, Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.shapes import given
from lamplighter.kit.threads import in_thread
from lamplighter.ports.sessions import SessionProvider, SessionUnknown
from lamplighter.services import sessions
from lamplighter.services.agents.queries import named, own
from lamplighter.services.agents.views import (
    AcknowledgedView,
    DrainingView,
    KilledView,
    NudgedView,
    RequestedView,
    RestartedView,
    SwitchedView,
    UnquarantinedView,
)
from lamplighter.services.context import Context
from lamplighter.services.file_edits import recorded
from lamplighter.services.operation import EDIT_S, LOOK_S, Http, effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.agents.naming import Named
    from lamplighter.services.host import Host

RESTART_LIMIT_S = 60.0
POLL_S = 0.05
_AT_ONCE = timedelta(0)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class NudgeAgent:
    """Type MESSAGE and Enter into its session."""

    name: str = given("The agent.", positional=True, names="agent")
    message: str = given("What to type.", positional=True)


@dataclass(frozen=True)
class DrainAgent:
    """Ask it to finish what it does; when it has, it gets a fresh session."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class UndrainAgent:
    """Take back what `drain` asked."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class RestartAgent:
    """Give it a fresh session now; returns when that runs."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class KillAgent:
    """End its session at once; a running controller starts it again."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class SuspendAgent:
    """Stop it and start it no more, until `resume`; written into city.toml."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class ResumeAgent:
    """Lift its suspension."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class UnquarantineAgent:
    """Forget its crashes: it may be started again at once."""

    name: str = given("The agent.", positional=True, names="agent")


@dataclass(frozen=True)
class DrainAck:
    """Say that the agent has finished: its session may end now."""

    name: str | None = given("The agent; inside a session its own.", default=None, positional=True, names="agent")
    session: str | None = given("The name of the session from which it speaks of itself.", default=None)


@dataclass(frozen=True)
class RequestRestart:
    """Ask for a fresh session, and wait for the end of this one; work stays on the hook."""

    name: str | None = given("The agent; inside a session its own.", default=None, positional=True, names="agent")
    session: str | None = given("The name of the session from which it speaks of itself.", default=None)


# ── doing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def nudge_agent(host: "Host", ask: NudgeAgent, ctx: Context) -> NudgedView:
    """Raises NotFound, Conflict if the agent does not run, NoInput."""
    who = await named(host, ask.name, ctx)
    await _need_living(host, who)
    await host.sessions.nudge(who.session, ask.message)
    return NudgedView(ask.name)


async def drain_agent(host: "Host", ask: DrainAgent, ctx: Context) -> DrainingView:
    """Raises NotFound, Conflict if the agent does not run."""
    who = await named(host, ask.name, ctx)
    await _need_living(host, who)
    marks = {meta.DRAIN_REASON: DrainReason.PERSON.value, meta.DRAIN: str(int(ctx.now.timestamp()))}
    await _mark(host, who, marks)
    await _announce(host, "agent.draining", who, f"asked by {ctx.actor.name}", ctx)
    return DrainingView(ask.name, draining=True)


async def undrain_agent(host: "Host", ask: UndrainAgent, ctx: Context) -> DrainingView:
    """Raises NotFound, Conflict if the agent does not run."""
    who = await named(host, ask.name, ctx)
    await _need_living(host, who)
    for key in (meta.DRAIN, meta.DRAIN_REASON, meta.DRAIN_ACK):
        await host.sessions.remove_meta(who.session, key)
    await _announce(host, "agent.undrained", who, f"asked by {ctx.actor.name}", ctx)
    return DrainingView(ask.name, draining=False)


async def restart_agent(host: "Host", ask: RestartAgent, ctx: Context) -> RestartedView:
    """Have the controller restart the agent; returns when the new session runs.

    Raises NotFound, Conflict if no controller runs or the agent does not, Unavailable after RESTART_LIMIT_S.
    """
    who = await named(host, ask.name, ctx)
    if not host.is_kept:
        raise Conflict("No controller runs this city.", hint="`lamp start` starts what should run.")
    before = await _need_living(host, who)
    await _mark(host, who, {meta.RESTART_REQUESTED: f"by {ctx.actor.name}"})
    await _wake(host)
    return RestartedView(ask.name, await _successor(host.sessions, before), before.session_id)


async def _successor(provider: SessionProvider, before: Seen) -> str:
    import asyncio

    try:
        async with TimeLimit(RESTART_LIMIT_S):
            seen = await provider.see(before.name)
            while seen is None or not seen.alive or seen.session_id == before.session_id:
                await asyncio.sleep(POLL_S)
                seen = await provider.see(before.name)
            return seen.session_id
    except TimeoutError:
        raise Unavailable(
            f"Session {before.name} was not restarted within {RESTART_LIMIT_S:g} s.",
            hint="`lamp agent show` tells what stands in the way; somebody attached to it is spared.",
        ) from None


async def kill_agent(host: "Host", ask: KillAgent, ctx: Context) -> KilledView:
    """The controller does it itself: otherwise it might restart the agent before all of the session has ended.

    Raises NotFound, Conflict if the agent does not run, StopFailed, Unavailable if the controller does not answer.
    """
    who = await named(host, ask.name, ctx)
    await _need_living(host, who)
    if host.patrol is not None:
        await host.patrol.kill(who.session, ctx.actor.name)
    elif host.is_kept:
        raise Unavailable("The controller does not answer just now.", hint="`lamp status` tells how it is.")
    else:
        await host.sessions.stop(who.session, grace=_AT_ONCE)
        await _announce(host, "agent.killed", who, f"killed by {ctx.actor.name}", ctx)
    return KilledView(ask.name)


async def suspend_agent(host: "Host", ask: SuspendAgent, ctx: Context) -> SwitchedView:
    """Raises NotFound, NotEditable."""
    return SwitchedView(ask.name, suspended=True, changed=await _switch(host, ask.name, ctx, suspended=True))


async def resume_agent(host: "Host", ask: ResumeAgent, ctx: Context) -> SwitchedView:
    """Raises NotFound, NotEditable."""
    return SwitchedView(ask.name, suspended=False, changed=await _switch(host, ask.name, ctx, suspended=False))


async def _switch(host: "Host", name: str, ctx: Context, *, suspended: bool) -> bool:
    who = await named(host, name, ctx)
    if who.agent is None:
        raise NotFound(f"`{who.name}` is not declared in city.toml.", hint="`lamp agent kill` ends its session.")
    edited = await in_thread(host.files.suspend_agent, who.agent.qualified_name, suspended=suspended)
    if edited.changed and not suspended:
        event = _event("agent.resumed", who, f"by {ctx.actor.name}", ctx)
        await recorded(host, edited, lambda tx: sessions.announce(tx, event))
    if edited.changed:
        await host.reload()
    return edited.changed


async def unquarantine_agent(host: "Host", ask: UnquarantineAgent, ctx: Context) -> UnquarantinedView:
    """Raises NotFound."""
    who = await named(host, ask.name, ctx)
    event = ctx.event("agent.unquarantined", subject=who.name, message="lifted by a person")
    await host.store.transact(sessions.unquarantine, who.session, event)
    if host.patrol is not None:
        host.patrol.forget_crashes(who.session)
    return UnquarantinedView(ask.name)


# ── from inside a session ─────────────────────────────────────────────────────────────────────────────────────────


async def drain_ack(host: "Host", ask: DrainAck, ctx: Context) -> AcknowledgedView:
    """Wakes the controller, which then stops the session. Raises NotFound, Conflict if the agent has no session."""
    who = await own(host, ask.name, ask.session, ctx)
    await _mark(host, who, {meta.DRAIN_ACK: "1"})
    await _wake(host)
    return AcknowledgedView(who.name)


async def request_restart(host: "Host", ask: RequestRestart, ctx: Context) -> RequestedView:
    """Raises NotFound, Conflict if the agent has no session."""
    who = await own(host, ask.name, ask.session, ctx)
    await _mark(host, who, {meta.RESTART_REQUESTED: "1"})
    await _announce(host, "agent.draining", who, "restart requested by agent", ctx)
    return RequestedView(who.name)


# ── shared ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _need_living(host: "Host", who: "Named") -> Seen:
    host.need_own()
    seen = await host.sessions.see(who.session) if who.session else None
    if seen is None or not seen.alive:
        raise Conflict(f"Agent `{who.name}` is not running.", hint=f"`lamp agent show {shlex.quote(who.name)}`.")
    return seen


async def _mark(host: "Host", who: "Named", marks: dict[str, str]) -> None:
    host.need_own()
    try:
        for key, value in marks.items():
            await host.sessions.set_meta(who.session, key, value)
    except SessionUnknown:
        raise Conflict(f"Agent `{who.name}` has no session.", hint="`lamp agent list` shows what runs.") from None


async def _announce(host: "Host", kind: str, who: "Named", message: str, ctx: Context) -> None:
    await host.store.transact(sessions.announce, _event(kind, who, message, ctx))


def _event(kind: str, who: "Named", message: str, ctx: Context) -> NewEvent:
    return ctx.event(kind, subject=who.name, message=message, payload={"session": who.session})


async def _wake(host: "Host") -> None:
    if host.patrol is not None:
        host.patrol.look_soon()
    else:
        await host.store.transact(lambda tx: tx.wake(sessions.TOPIC))


NUDGE = effect(
    "agent.nudge", Verb.CONTROL_AGENTS, NudgeAgent, NudgedView, nudge_agent, http=Http("POST", "/agents/{name}/nudge")
)
DRAIN = effect(
    "agent.drain",
    Verb.CONTROL_AGENTS,
    DrainAgent,
    DrainingView,
    drain_agent,
    here_after=LOOK_S,
    http=Http("POST", "/agents/{name}/drain"),
)
UNDRAIN = effect(
    "agent.undrain",
    Verb.CONTROL_AGENTS,
    UndrainAgent,
    DrainingView,
    undrain_agent,
    here_after=LOOK_S,
    http=Http("POST", "/agents/{name}/undrain"),
)
RESTART = effect(
    "agent.restart",
    Verb.CONTROL_AGENTS,
    RestartAgent,
    RestartedView,
    restart_agent,
    http=Http("POST", "/agents/{name}/restart"),
)
KILL = effect(
    "agent.kill", Verb.CONTROL_AGENTS, KillAgent, KilledView, kill_agent, http=Http("POST", "/agents/{name}/kill")
)
SUSPEND = effect(
    "agent.suspend",
    Verb.WRITE_CITY,
    SuspendAgent,
    SwitchedView,
    suspend_agent,
    here_after=EDIT_S,
    http=Http("POST", "/agents/{name}/suspend"),
)
RESUME = effect(
    "agent.resume",
    Verb.WRITE_CITY,
    ResumeAgent,
    SwitchedView,
    resume_agent,
    here_after=EDIT_S,
    http=Http("POST", "/agents/{name}/resume"),
)
UNQUARANTINE = effect(
    "agent.unquarantine",
    Verb.CONTROL_AGENTS,
    UnquarantineAgent,
    UnquarantinedView,
    unquarantine_agent,
    http=Http("POST", "/agents/{name}/unquarantine"),
)
DRAIN_ACK = effect(
    "agent.drain-ack",
    Verb.CONTROL_AGENTS,
    DrainAck,
    AcknowledgedView,
    drain_ack,
    patient=True,
    here_after=LOOK_S,
    http=Http("POST", "/agents/{name}/drain-ack"),
)
REQUEST_RESTART = effect(
    "agent.request-restart", Verb.CONTROL_AGENTS, RequestRestart, RequestedView, request_restart,
    patient=True, here_after=LOOK_S, http=Http("POST", "/agents/{name}/request-restart"),
)  # fmt: skip
