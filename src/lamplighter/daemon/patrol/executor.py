"""Carries out the patrol's actions, in order for one session and in parallel for many, and records each result."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from lamplighter.daemon.patrol.history import PatrolHistory
from lamplighter.daemon.patrol.turns import Turns
from lamplighter.domain.city.wanted import Roster
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import (
    Action,
    ClearDrain,
    Drain,
    NoteEnd,
    Quarantine,
    Restart,
    RestartReason,
    Start,
    Stop,
    StopReason,
)
from lamplighter.domain.sessions.crashes import end_cause, signal_name
from lamplighter.domain.sessions.idle import draining
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.domain.sessions.outlook import pool_of
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.counting import counted
from lamplighter.kit.descriptors import OutOfDescriptors
from lamplighter.kit.errors import LampError
from lamplighter.kit.tasks import spawn
from lamplighter.ports.agents import Work, Workshop
from lamplighter.ports.secrets import NoSecrets, SecretSource
from lamplighter.ports.sessions import GRACE, NudgesLate, SessionAlive, SessionProvider, SessionUnknown
from lamplighter.services.sessions import TAIL
from lamplighter.store.sessions import SessionEnd

SIDE_BY_SIDE = 16
REMEMBERED = 10_000
CRASH_LINES = 50
_COMES_BACK = frozenset({StopReason.DEPENDENCY, StopReason.RENAMED})  # its beads stay with its next session


@dataclass(frozen=True)
class Deed:
    """One thing that was done: `kind` is started, restarted or stopped."""

    kind: str
    agent: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} agent `{self.agent}` ({self.reason})."


@dataclass
class ActionExecutor:
    """`sight` is shared with the patrol, so that it sees at once what an action changed."""

    provider: SessionProvider
    workshop: Workshop
    work: Work
    patrol_history: PatrolHistory
    clock: Clock
    roster: Callable[[], Roster]
    sight: dict[SessionName, Seen]
    problems: dict[str, str] = field(default_factory=dict)
    done: deque[Deed] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    last_words: dict[SessionName, str] = field(default_factory=dict)  # of sessions whose end was just reported
    secrets: SecretSource = field(default_factory=NoSecrets)
    booted_at: datetime | None = None
    """When the machine was started, if that is known."""
    _turns: Turns = field(init=False)
    _late: dict[SessionName, asyncio.Task[None]] = field(default_factory=dict)
    """What waits for programs that did not become ready in time, to give them the nudge of their start."""
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))

    def __post_init__(self) -> None:
        self._turns = Turns(self.clock)

    async def carry_out(self, actions: Sequence[Action]) -> bool:
        """Carry out the actions of one session in order; False if one failed and should not be tried again at once."""
        building = self._begun(actions)
        try:
            for action in actions:
                if not await self._one(action, building):
                    return False
        finally:
            if building is not None and not building.cancel() and not building.cancelled():
                building.exception()  # marks it as seen if no start awaited it; a start reports it itself
            self.patrol_history.flush_soon()
        return True

    def _begun(self, actions: Sequence[Action]) -> "asyncio.Future[SessionSpec | None] | None":
        """Start building the spec for a start while the actions before it, such as noting an end, are carried out."""
        names = [action.agent for action in actions if isinstance(action, Start)]
        return asyncio.ensure_future(self._build(names[0])) if len(actions) > 1 and names else None

    async def _build(self, name: str) -> SessionSpec | None:
        """Build the session's spec; None if the configuration changed meanwhile and no longer declares the agent."""
        roster = self.roster()
        declared = roster.declared.get(name)
        if declared is None:
            return None
        spec = await asyncio.to_thread(self.workshop.build, roster.loaded, declared, name)
        return replace(spec, env=await self.secrets.opened(spec.env))

    async def _one(self, action: Action, building: "asyncio.Future[SessionSpec | None] | None" = None) -> bool:
        match action:
            case NoteEnd():
                done = await self._note_end(action)
            case Quarantine():
                done = await self._quarantine(action)
            case ClearDrain():
                done = await self._clear_drain(action)
            case Drain():
                done = await self._drain(action)
            case Stop():
                done = await self._stop(action)
            case Restart():
                done = await self._restart(action)
            case Start(session, agent, reason):
                counted = self.patrol_history.of(session).next_start_counts
                done = await self._start(session, agent, str(reason), counted=counted, building=building)
            case _:
                assert_never(action)
        return done

    # ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _start(
        self, session: SessionName, name: str, reason: str, *, counted: bool,
        building: "asyncio.Future[SessionSpec | None] | None" = None, kind: str = "started",
    ) -> bool:  # fmt: skip
        async with self._in_turn(session), self._room:
            at = self.clock.now()
            try:
                spec = await (building or self._build(name))
                if spec is None:
                    return False
                seen = await self.provider.start(spec)
            except SessionAlive:
                return await self._is_there(session)
            except LampError as error:
                self._not_started(session, name, reason, error, at)
                return True
        self.sight[session] = seen
        self.problems.pop(f"agent {name}", None)
        self.patrol_history.began(name, seen, reason, at=at, counted=counted)
        self.done.append(Deed(kind, name, reason))
        log.get().info("agent.started", agent=name, session=session, reason=reason, pid=seen.pid)
        if why := seen.meta.get(meta.NUDGE_FAILED):
            self._not_nudged(session, name, why)
            if meta.NUDGE_WAITS in seen.meta:
                self._nudge_later(name, spec, seen)
        return True

    def _in_turn(self, session: SessionName) -> contextlib.AbstractAsyncContextManager[None]:
        """After a restart of the machine all agents are to be started: one after another, where they were before it."""
        lives = self.patrol_history.of(session).lives
        if self.booted_at is None or not lives or lives[-1].started_at >= self.booted_at:
            return contextlib.nullcontext()
        return self._turns.turn()

    def _not_nudged(self, session: SessionName, name: str, why: str) -> None:
        event = self.patrol_history.event("agent.nudge_failed", name, why, {"session": session})
        self.patrol_history.tell(session, event)
        log.get().warning("agent.nudge_failed", agent=name, session=session, error=why)

    def _nudge_later(self, name: str, spec: SessionSpec, seen: Seen) -> None:
        """Wait in the background for a program that did not become ready in time, for as long as this start lasts."""
        if not isinstance(self.provider, NudgesLate):
            return
        if before := self._late.pop(spec.name, None):
            before.cancel()
        waiting = spawn(self._nudged_late(name, spec, seen, self.provider), name=f"nudge {spec.name}")
        self._late[spec.name] = waiting
        waiting.add_done_callback(lambda _: self._forget_late(spec.name, waiting))

    def _forget_late(self, session: SessionName, waiting: "asyncio.Task[None]") -> None:
        if self._late.get(session) is waiting:
            del self._late[session]

    async def _nudged_late(self, name: str, spec: SessionSpec, seen: Seen, provider: NudgesLate) -> None:
        try:
            why = await provider.nudge_when_ready(spec, seen.session_id)
        except LampError as error:
            why = error.message
        if why is None:
            return
        if why:
            self._not_nudged(spec.name, name, why)
        else:
            told = "its first message was typed to it late, once it was ready"
            event = self.patrol_history.event("agent.nudged", name, told, {"session": spec.name})
            self.patrol_history.tell(spec.name, event)
            log.get().info("agent.nudged", agent=name, session=spec.name)
        self.patrol_history.flush_soon()

    async def close(self) -> None:
        """Wait for no program any longer."""
        for waiting in (late := list(self._late.values())):
            waiting.cancel()
        if late:
            await asyncio.wait(late)

    async def _is_there(self, session: SessionName) -> bool:
        """Update `sight` with the session as it is now; True if it exists.

        The next look adopts a session that another process started.
        """
        seen = await self.provider.see(session)
        if seen is not None:
            self.sight[session] = seen
        return seen is not None

    def _not_started(self, session: SessionName, name: str, reason: str, error: LampError, at: datetime) -> None:
        self.problems[f"agent {name}"] = error.message
        counted = not isinstance(error, OutOfDescriptors)  # this process lacks descriptors; the agent did not crash
        self.patrol_history.failed(name, session, reason, error, at=at, counted=counted)
        log.get().warning("agent.start_failed", agent=name, session=session, error=error.message, hint=error.hint)

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _stop(self, action: Stop) -> bool:
        seen = self.sight.get(action.session)
        kind = "agent.suspended" if action.reason is StopReason.SUSPENDED else "agent.stopped"
        if not await self._end(action.session, action.agent, kind, str(action.reason)):
            return False
        self.done.append(Deed("stopped", action.agent, str(action.reason)))
        if seen is not None and pool_of(seen) and action.reason not in _COMES_BACK:
            await self._free(action.agent)
        return True

    async def kill(self, session: SessionName, agent: str, by: str) -> bool:
        """End the session at once, because a person asked for it."""
        try:
            return await self._end(session, agent, "agent.killed", f"killed by {by}", grace=timedelta(0))
        finally:
            await self.patrol_history.flush()

    async def _end(self, session: SessionName, agent: str, kind: str, why: str, *, grace: timedelta = GRACE) -> bool:
        seen = self.sight.get(session)
        async with self._room:
            try:
                await self.provider.stop(session, grace=grace)
            except LampError as error:
                self.problems[f"agent {agent}"] = error.message
                log.get().warning("agent.not_stopped", agent=agent, session=session, error=error.message)
                return False
        self.sight.pop(session, None)
        self.problems.pop(f"agent {agent}", None)
        died = seen is not None and not seen.alive
        end = SessionEnd(self.clock.now(), why, seen.exit_status if seen is not None and died else None)
        event = self.patrol_history.event(kind, agent, why, {"session": session, "reason": why})
        wished = seen is None or seen.alive or draining(seen) is not None
        self.patrol_history.ended(session, end, wished=wished, events=(event,))
        log.get().info(kind, agent=agent, session=session, reason=why)
        return True

    async def _restart(self, action: Restart) -> bool:
        asker = self._asker(action)
        why = f"restart requested by {asker}" if asker else ": ".join(filter(None, (action.reason, action.detail)))
        kind = "agent.idle_killed" if action.reason is RestartReason.IDLE else "agent.stopped"
        if not await self._end(action.session, action.agent, kind, why):
            return False
        await self._start(action.session, action.agent, why, counted=False, kind="restarted")
        await self._try(self.provider.clear_scrollback(action.session))
        return True

    def _asker(self, action: Restart) -> str:
        """The person who asked for the restart, else empty: an agent asks by a mark without a name."""
        seen = self.sight.get(action.session)
        mark = "" if seen is None else seen.meta.get(meta.RESTART_REQUESTED, "")
        return mark.removeprefix("by ") if mark.startswith("by ") else ""

    # ── marks and notes ───────────────────────────────────────────────────────────────────────────────────────────

    async def _note_end(self, action: NoteEnd) -> bool:
        text = ""
        if action.has_output:
            heard = self.last_words.pop(action.session, None)
            said = await self.provider.peek(action.session, CRASH_LINES) if heard is None else heard
            text = (await self.secrets.mask())(said).strip()
            action = await self._with_status(action)
        why = end_cause(action.exit_status, text) if action.has_output else "its session was gone"
        end = SessionEnd(self.clock.now(), why, action.exit_status, text[-TAIL:] or None)
        if action.drained:
            self._note_drained(action, end)
            return True
        payload = {"session": action.session, "session_id": action.session_id, "exit_status": action.exit_status,
                   "output": text[-TAIL:]}  # fmt: skip
        by = signal_name(action.exit_status)
        message = text[-TAIL:] if by is None else f"ended by {by}; what it wrote last:\n{text[-TAIL:]}"
        told = (self.patrol_history.event("agent.crashed", action.agent, message, payload),) if text else ()
        self.patrol_history.ended(action.session, end, wished=False, events=told)
        if action.session_id:
            self.patrol_history.noted(action.session, crash_noted=action.session_id)
        log.get().warning("agent.crashed", agent=action.agent, session=action.session, status=action.exit_status)
        await self.patrol_history.flush()  # before the next session's output replaces this one's
        return True

    async def _with_status(self, action: NoteEnd) -> NoteEnd:
        """The status is written a moment after the program's end; a look in between has missed it."""
        if action.exit_status is not None:
            return action
        seen = await self.provider.see(action.session)
        same = seen is not None and seen.session_id == action.session_id
        return replace(action, exit_status=seen.exit_status) if seen is not None and same else action

    def _note_drained(self, action: NoteEnd, end: SessionEnd) -> None:
        """It was asked to finish and ended by itself, whatever its exit status: nobody has to look into it."""
        why = f"{StopReason.DRAINED}: {end.reason}"
        payload = {"session": action.session, "reason": why, "exit_status": action.exit_status}
        event = self.patrol_history.event("agent.stopped", action.agent, why, payload)
        self.patrol_history.ended(action.session, replace(end, reason=why), wished=True, events=(event,))
        if action.session_id:
            self.patrol_history.noted(action.session, crash_noted=action.session_id)
        log.get().info("agent.stopped", agent=action.agent, session=action.session, reason=why)

    async def _quarantine(self, action: Quarantine) -> bool:
        cause = self.patrol_history.of(action.session).last_cause
        often = f"started {counted(action.starts, 'time')}" + (f", the last time {cause}" if cause else "")
        why = f"{often}; not started again before {action.until:%Y-%m-%d %H:%M:%S} UTC"
        payload = {
            "session": action.session,
            "starts": action.starts,
            "until": action.until.isoformat(),
            "cause": cause,
        }
        event = self.patrol_history.event("agent.quarantined", action.agent, why, payload)
        self.patrol_history.noted(action.session, event, quarantine_noted=action.until)
        log.get().warning("agent.quarantined", agent=action.agent, starts=action.starts, until=str(action.until))
        agent = self.roster().declared.get(action.agent)
        if agent is not None and agent.pool is not None:
            await self._free(action.agent)
        return True

    async def _drain(self, action: Drain) -> bool:
        why = ": ".join(filter(None, (str(action.reason), action.detail)))
        try:
            await self.provider.set_meta(action.session, meta.DRAIN_REASON, action.reason)
            await self.provider.set_meta(action.session, meta.DRAIN, str(int(self.clock.now().timestamp())))
        except LampError as error:
            return isinstance(error, SessionUnknown)
        self.patrol_history.tell(
            action.session, self.patrol_history.event("agent.draining", action.agent, why, {"session": action.session})
        )
        return await self._is_there(action.session)

    async def _clear_drain(self, action: ClearDrain) -> bool:
        for key in (meta.DRAIN, meta.DRAIN_REASON, meta.DRAIN_ACK):
            await self._try(self.provider.remove_meta(action.session, key))
        self.patrol_history.tell(
            action.session, self.patrol_history.event("agent.undrained", action.agent, "wanted again")
        )
        return await self._is_there(action.session)

    async def _free(self, instance: str) -> None:
        """Put back the beads of a pool instance that will not return."""
        try:
            freed = await self.work.free(instance)
        except LampError as error:
            log.get().warning("agent.beads_kept", agent=instance, error=error.message)
            return
        if freed:
            log.get().info("agent.beads_freed", agent=instance, count=freed)

    async def _try(self, wish: Awaitable[None]) -> None:
        try:
            await wish
        except LampError as error:
            log.get().warning("session.wish_failed", error=error.message)
