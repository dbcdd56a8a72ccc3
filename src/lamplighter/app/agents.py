"""What commands do with agents: they call the session provider themselves, and the controller where one runs."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from lamplighter.adapters.control import ask
from lamplighter.adapters.files.lock import controller_pid
from lamplighter.app.sessions import open_named, provider_name
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.city.model import Agent
from lamplighter.domain.city.names import find_agent
from lamplighter.domain.city.wanted import Roster, roster
from lamplighter.domain.events import EventFilter
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.kit import aio
from lamplighter.kit.errors import Conflict, NotFound, Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.nearest import full_stop
from lamplighter.ports.sessions import SessionProvider, SessionUnknown
from lamplighter.services import sessions
from lamplighter.services.agents import View, agent_rows

R = TypeVar("R")
RESTART_LIMIT_S = 60.0
POLL_S = 0.05
_AT_ONCE = timedelta(0)


@dataclass(frozen=True)
class Named:
    """The agent that a command names: its declaration, if it has one, its full name and its session."""

    agent: Agent | None
    name: str
    session: SessionName


class Agents:
    """The agents of a city, as seen by a process that is not its controller."""

    def __init__(self, city: OpenCity) -> None:
        self._city = city

    @cached_property
    def roster(self) -> Roster:
        return roster(self._city.config)

    @property
    def is_kept(self) -> bool:
        return controller_pid(self._city.paths.lock) is not None

    # ── finding ───────────────────────────────────────────────────────────────────────────────────────────────────

    def named(self, given: str | None = None) -> Named:
        """Find the agent `given`; without a name, the agent whose session this is. Raises NotFound."""
        wanted = given or self.own_name()
        env = self._city.settings.env
        found = find_agent(self.roster.city.agents, wanted, rig=env.get("LAMP_RIG") or env.get("GC_RIG") or "")
        if found is not None:
            agent, name = found
            return Named(agent, name, self._session(name, own=given is None))
        for row in self.rows():
            if wanted in {row["name"], row["session"]} and row["session"]:
                return Named(None, row["name"], SessionName(row["session"]))
        raise NotFound(
            f"There is no agent `{wanted}`{full_stop(wanted, self.roster.declared)}",
            hint="`lamp agent list` shows those there are.",
        )

    def own_name(self) -> str:
        env = self._city.settings.env
        own = env.get("LAMP_AGENT") or env.get("GC_AGENT")
        if not own:
            raise NotFound("No agent is named, and this is not an agent's session.", hint="Name one.")
        return own

    def _session(self, name: str, *, own: bool) -> SessionName:
        from_env = self._city.settings.env.get(meta.ENV_SESSION)
        if own and from_env:
            return SessionName(from_env)
        return self.roster.sessions.get(name, SessionName(""))

    def is_suspended(self, agent: Agent) -> bool:
        return self.roster.city.workspace.suspended or self.roster.is_suspended(agent)

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self) -> list[dict[str, Any]]:
        """The agents as the controller reports them; if none runs or answers, as store and provider show them."""
        if self.is_kept:
            try:
                rows: list[dict[str, Any]] = ask(self._city.paths.socket, "agents", within=5.0)["agents"]
            except Unavailable:
                pass
            else:
                return rows
        now = self._city.clock.now()
        since = now - self.roster.city.daemon.restart_window
        kept = self._city.store.read(sessions.remembered, since=since)
        sight = self.speak(lambda provider: provider.seen())
        return agent_rows(View(self.roster, sight, kept.histories, {}, now, kept=False))

    def row(self, who: Named) -> dict[str, Any]:
        found = next((row for row in self.rows() if row["name"] == who.name), None)
        return found or {"name": who.name, "state": "stopped", "session": who.session or None, "reason": ""}

    def story(self, who: Named, *, limit: int = 10) -> dict[str, Any]:
        """The agent's row with its last starts and the last actions on it, each with its reason."""
        wanted = EventFilter(type="agent.*", subject=who.name)
        starts, events = self._city.store.read(
            lambda tx: (tx.agents.latest(who.session, limit=limit), tx.events.latest(wanted, limit=limit))
        )
        return self.row(who) | {
            "starts": [start.as_json() for start in starts],
            "actions": [event.as_json() for event in events],
        }

    def peek(self, who: Named, lines: int) -> str:
        return self.speak(lambda provider: provider.peek(who.session, lines))

    def attach_command(self, who: Named) -> tuple[str, ...]:
        return self.speak(lambda provider: provider.attach_command(who.session))

    # ── doing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def nudge(self, who: Named, text: str) -> None:
        self._need_living(who)
        self.speak(lambda provider: provider.nudge(who.session, text))

    def drain(self, who: Named) -> None:
        self._need_living(who)
        marks = {meta.DRAIN_REASON: DrainReason.PERSON.value, meta.DRAIN: str(int(self._city.clock.now().timestamp()))}
        self._mark(who, marks)
        self._tell("agent.draining", who, f"asked by {self._city.settings.actor}")

    def undrain(self, who: Named) -> None:
        self._need_living(who)

        async def clear(provider: SessionProvider) -> None:
            for key in (meta.DRAIN, meta.DRAIN_REASON, meta.DRAIN_ACK):
                await provider.remove_meta(who.session, key)

        self.speak(clear)
        self._tell("agent.undrained", who, f"asked by {self._city.settings.actor}")

    def is_draining(self, who: Named) -> bool:
        return bool(self.speak(lambda provider: provider.get_meta(who.session, meta.DRAIN)))

    def acknowledge(self, who: Named) -> None:
        """Mark that the agent has finished draining, and wake the controller, which then stops it."""
        self._mark(who, {meta.DRAIN_ACK: "1"})
        self._wake()

    def request_restart(self, who: Named) -> None:
        self._mark(who, {meta.RESTART_REQUESTED: "1"})
        self._tell("agent.draining", who, "restart requested by agent")

    def restart(self, who: Named) -> dict[str, Any]:
        """Have the controller restart the agent; returns when the new session runs.

        Raises Conflict if no controller runs or the agent does not, Unavailable after RESTART_LIMIT_S.
        """
        if not self.is_kept:
            raise Conflict("No controller runs this city.", hint="`lamp start` starts what should run.")
        before = self._need_living(who)
        self._mark(who, {meta.RESTART_REQUESTED: f"by {self._city.settings.actor}"})
        self._wake()
        return {"session_id": self.speak(lambda provider: _successor(provider, before)), "before": before.session_id}

    def kill(self, who: Named) -> None:
        """End the session at once.

        A running controller does it itself: otherwise it might restart the agent before all of the session has ended.
        """
        self._need_living(who)
        by = self._city.settings.actor
        if self.is_kept:
            ask(self._city.paths.socket, "kill", session=who.session, by=by)
            return
        self.speak(lambda provider: provider.stop(who.session, grace=_AT_ONCE))
        self._tell("agent.killed", who, f"killed by {by}")

    def switch(self, who: Named, *, suspended: bool) -> bool:
        """Suspend or resume the agent in city.toml; False if nothing had to change."""
        if who.agent is None:
            raise NotFound(f"`{who.name}` is not declared in city.toml.", hint="`lamp agent kill` ends its session.")
        from lamplighter.adapters.files import edit
        from lamplighter.app.edits import apply_edit, editable

        change = edit.suspend_agent(editable(self._city), who.agent.qualified_name, suspended=suspended)
        changed = apply_edit(self._city, change)
        if changed and not suspended:
            self._tell("agent.resumed", who, f"by {self._city.settings.actor}")
        if changed and self.is_kept:
            ask(self._city.paths.socket, "reload")
        return changed

    def unquarantine(self, who: Named) -> None:
        event = self._city.act().event("agent.unquarantined", subject=who.name, message="lifted by a person")
        self._city.store.transact(sessions.unquarantine, who.session, event)
        if self.is_kept:
            ask(self._city.paths.socket, "unquarantine", session=who.session)

    def speak(self, words: Callable[[SessionProvider], Awaitable[R]]) -> R:
        """Call `words` with the city's session provider, which is opened for this one call."""
        self._city.warn_of_copy()
        return aio.run(self._speak(words))

    def speak_to_each(self, words: Callable[[SessionProvider], Awaitable[R]]) -> list[R]:
        """Call `words` with the provider of agents' sessions, and with that of runs if it is a different one."""
        self._city.warn_of_copy()
        city = self._city.config.city
        own = provider_name(city, self._city.settings.env)
        return [aio.run(self._speak(words, name)) for name in dict.fromkeys((own, city.runs.provider))]

    async def _speak(self, words: Callable[[SessionProvider], Awaitable[R]], name: str | None = None) -> R:
        city = self._city
        wanted = name or provider_name(city.config.city, city.settings.env)
        provider = open_named(wanted, city.paths, city.settings.env, clock=city.clock, ids=city.ids)
        try:
            return await words(provider)
        finally:
            await provider.close()

    def _need_living(self, who: Named) -> Seen:
        self._city.need_own()
        seen = self.speak(lambda provider: provider.see(who.session)) if who.session else None
        if seen is None or not seen.alive:
            raise Conflict(f"Agent `{who.name}` is not running.", hint=f"`lamp agent show {shlex.quote(who.name)}`.")
        return seen

    def _mark(self, who: Named, marks: dict[str, str]) -> None:
        self._city.need_own()

        async def write(provider: SessionProvider) -> None:
            for key, value in marks.items():
                await provider.set_meta(who.session, key, value)

        try:
            self.speak(write)
        except SessionUnknown:
            raise Conflict(f"Agent `{who.name}` has no session.", hint="`lamp agent list` shows what runs.") from None

    def _tell(self, kind: str, who: Named, message: str) -> None:
        event = self._city.act().event(kind, subject=who.name, message=message, payload={"session": who.session})
        self._city.store.transact(sessions.announce, event)

    def _wake(self) -> None:
        self._city.store.transact(lambda tx: tx.wake(sessions.TOPIC))


async def _successor(provider: SessionProvider, before: Seen) -> str:
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
