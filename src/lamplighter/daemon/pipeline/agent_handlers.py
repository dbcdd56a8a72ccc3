"""Handlers for the outbox kinds of the agent pipeline: enrich, execute, artifacts, notices, the end of sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.agent_sessions import AgentRuns
from lamplighter.daemon.pipeline.memory import Memory
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.domain.automations.model import AgentAction, TriggerKind, deadline
from lamplighter.domain.automations.policies import CatchUpMode
from lamplighter.domain.city.run_plan import spoken_to
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.model import MESSAGE, Run, RunState, Stage
from lamplighter.domain.runs.target import Ask, Target, settle
from lamplighter.domain.sessions.logins import GiveUp, Go, Login, Wait, Waiting
from lamplighter.domain.sessions.model import SessionName
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.ids import IdSource
from lamplighter.kit.records import changed
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.ports.selector import Selector
from lamplighter.ports.sessions import Speaks
from lamplighter.services import outbox
from lamplighter.services.context import Context, acting
from lamplighter.services.runs import artifacts, enriching, executing, review, turns
from lamplighter.services.runs.bounds import Bounds, most_of
from lamplighter.store.tx import Store

ELSEWHERE = timedelta(seconds=2)


@dataclass
class AgentHandlers:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    worker: Worker
    agents: AgentRuns
    artifacts: ArtifactStore
    selector: Selector
    memory: Memory

    async def enrich(self, item: Item) -> None:
        await self.store.transact(enriching.enrich, item, self.worker.me, ctx=self._context())
        crash_point(CrashPoint.RUN_AFTER_ENRICHED)

    async def execute(self, item: Item, row: Run) -> None:
        """Start the run, or hand it on if this process does not hold its rig.

        If a model chooses the target, it is asked before anything is written: after a crash it is only asked again.
        """
        if row.continues is not None and await self.store.read(turns.must_wait, row, self.worker.me.node):
            now = self.clock.now()
            await self.store.transact(outbox.later, item, now + ELSEWHERE, now)
            return
        if await self._must_wait_for_agent(item, row):
            return
        target, before = await self._target(item, row)
        if before.rig is not None and not self.active.holds(before.rig):
            await self.store.transact(executing.hand_on, item, target, before.rig, ctx=self._context())
            return
        admitted = await self._admitted(item, changed(row, configuration=target.configuration), before.not_working)
        if admitted is None:
            return
        me = self.worker.me
        chosen = changed(row, configuration=target.configuration)
        bounds = await self._bounds(chosen, before.rig, fallback=admitted.fallback)
        started = await self.store.transact(
            executing.begin, item, target, me, admitted, ctx=self._context(), bounds=bounds
        )
        if started is not None:
            self.worker.begin(started)

    async def _must_wait_for_agent(self, item: Item, row: Run) -> bool:
        """Whether the run waits: its agent does not run, is asked for a permission, or has another run."""
        automation, sessions = review.snapshots_of(row), self.agents.sessions
        if automation.speaks_to is None or not isinstance(sessions, Speaks):
            return False
        found = spoken_to(self.active.city, automation.speaks_to, automation.rig)
        why = "" if found is None else await sessions.not_now(SessionName(found[1]), row.id)
        if not why:
            return False
        bounds, why = await self.memory.bounds(rig="", preset="", login=""), f"`{automation.speaks_to}`: {why}"
        await self.store.transact(executing.wait_for_agent, item, why, bounds, ctx=self._context())
        return True

    async def _bounds(self, row: Run, rig: str | None, *, fallback: bool) -> Bounds:
        preset = login = ""
        if most_of(self.active.city.limits).needs_plan:
            preset, login = await self.agents.logins.counted_as(row, fallback=fallback)
        return await self.memory.bounds(rig=rig or "", preset=preset, login=login)

    async def _admitted(self, item: Item, row: Run, known: tuple[Login, ...]) -> executing.Admitted | None:
        """How the run starts; None for one that waits for its login or a limit, or is skipped for it."""
        automation = review.snapshots_of(row)
        span = deadline(automation, row.trigger_kind, self.active.rules.deadline)
        anew = self.clock.now() + span if row.reason else None  # one that was held has its time from now on
        if not known:
            return executing.Admitted(deadline_at=anew)
        catch_up = automation.policies.catch_up
        patience = timedelta(0) if catch_up.mode is CatchUpMode.SKIP else catch_up.within
        by_hand = row.trigger_kind in {TriggerKind.MANUAL, MESSAGE} and row.attempt == 0
        waiting = Waiting(row.id, row.created_at + patience, by_hand=by_hand)
        found = await self.agents.logins.admission(row, waiting, known)
        match found.decision:
            case Go(tries):
                return executing.Admitted(tries, found.fallback, anew)
            case Wait() as wait:
                until = waiting.give_up_at + span
                await self.store.transact(executing.hold, item, wait, until, ctx=self._context())
            case GiveUp(why):
                ending = review.Ending(RunState.SKIPPED, why.state.value, Stage.EXECUTION, error=why.detail)
                await self.store.transact(review.refuse, item, ending, self.worker.me, ctx=self._context())
            case other:
                assert_never(other)
        return None

    async def write_artifact(self, item: Item) -> None:
        """The artifact's key is the same for every try, so a repeated write replaces the earlier one."""
        what = await self.store.read(artifacts.to_write, item)
        if what is None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        await self.artifacts.put(what.key, what.content, content_type=what.artifact.content_type)
        crash_point(CrashPoint.ARTIFACT_AFTER_WRITE)
        await self.store.transact(artifacts.was_written, item, what, self._context())

    async def stop_session(self, item: Item) -> None:
        """End the session; other nodes put the item off, because only the session's own node can end it.

        The worker that held the run has often ended the session already. With `kept`, a decision has come since, and
        what was kept for it is freed too.
        """
        node, run = item.payload.get("node"), item.payload["session"]
        now = self.clock.now()
        if node not in {None, self.worker.me.node}:
            await self.store.transact(outbox.later, item, now + ELSEWHERE, now)
            return
        is_left = item.payload.get("kept", False) or not self.worker.has_released(run)
        if is_left and not self.worker.holds(run):
            await self.agents.release(run)
        await self.store.transact(outbox.done, item, self.clock.now())

    async def _target(self, item: Item, row: Run) -> tuple[Target, executing.BeforeStart]:
        target = await self._settled(item, row)
        if target is None:
            action = review.snapshots_of(row).action
            if not isinstance(action, AgentAction):
                raise TypeError(f"run {row.id} has no agent action")
            wish = executing.wish_of(action)
            found = await self.store.read(executing.look_up, wish, row)
            if isinstance(found.target, Ask):
                payload: Mapping[str, Any] = await self.store.read(enriching.work_of, row)
                target = settle(wish, found.known, await self.selector.select(payload, found.target.candidates))
            else:
                target = found.target
            if found.before is not None:
                return target, found.before
        return target, await self.store.read(executing.before_start, target, row)

    async def _settled(self, item: Item, row: Run) -> Target | None:
        """The target of a run that was handed on or goes on with another one."""
        told = item.payload.get("target")
        if told is not None:
            return executing.target_told(told)
        return None if row.continues is None else await self.store.read(turns.target_of, row)

    def _context(self) -> Context:
        return acting(self.worker.me.actor, self.clock.now(), self.ids)
