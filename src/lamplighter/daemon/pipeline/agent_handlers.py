"""Handlers for the outbox kinds of the agent pipeline: enrich, execute, artifacts, notices, the end of sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.agent_job import AgentRuns
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.artifacts import JSON_TYPE
from lamplighter.domain.runs.target import Ask, Target, resolve, settle
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.artifacts import ArtifactStore
from lamplighter.ports.selector import Selector
from lamplighter.services import configurations, outbox
from lamplighter.services.runs import artifacts, enriching, executing, review
from lamplighter.store.run_rows import RunRow
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

    async def enrich(self, item: Item) -> None:
        await self.store.transact(enriching.enrich, item, self.worker.me, ids=self.ids, act=self._act())
        crash_point(CrashPoint.RUN_AFTER_ENRICHED)

    async def execute(self, item: Item, row: RunRow) -> None:
        """Start the run, or hand it on if this process does not hold its rig.

        If a model chooses the target, it is asked before anything is written: after a crash it is only asked again.
        """
        target = await self._target(item, row)
        rig = await self.store.read(executing.rig_of, target, row)
        if rig is not None and not self.active.holds(rig):
            await self.store.transact(executing.hand_on, item, target, rig, ids=self.ids, act=self._act())
            return
        started = await self.store.transact(
            executing.begin, item, target, self.worker.me, ids=self.ids, act=self._act()
        )
        if started is not None:
            self.worker.begin(started)

    async def write_artifact(self, item: Item) -> None:
        """The artifact's key is the same for every try, so a repeated write replaces the earlier one."""
        what = await self.store.read(artifacts.to_write, item)
        if what is None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        await self.artifacts.put(what.key, what.content, content_type=JSON_TYPE)
        crash_point(CrashPoint.ARTIFACT_AFTER_WRITE)
        await self.store.transact(artifacts.was_written, item, what, self._act())

    async def stop_session(self, item: Item) -> None:
        """End the session; other nodes put the item off, because only the session's own node can end it.

        The worker that held the run has often ended the session already.
        """
        node, run = item.payload.get("node"), item.payload["session"]
        now = self.clock.now()
        if node not in {None, self.worker.me.node}:
            await self.store.transact(outbox.later, item, now + ELSEWHERE, now)
            return
        if not self.worker.holds(run):
            await self.agents.release(run)
        await self.store.transact(outbox.done, item, self.clock.now())

    async def notify(self, item: Item) -> None:
        """Settle the item if there are no recipients; else raise Unavailable, since nothing here can send notices.

        The error is then kept on the item.
        """
        row = await self.store.read(lambda tx: tx.runs.get(item.payload["run"]))
        told = () if row is None else review.snapshots_of(row.run).policies.notify.to
        if told or self.active.city.notifications.slack_channel:
            raise Unavailable("Nothing here can send notices.", hint="Leave `notify` and `slack_channel` empty.")
        await self.store.transact(outbox.done, item, self.clock.now())

    async def _target(self, item: Item, row: RunRow) -> Target:
        told = item.payload.get("target")
        if told is not None:
            return executing.target_told(told)
        action = review.snapshots_of(row.run).action
        if not isinstance(action, AgentAction):
            raise TypeError(f"run {row.run.id} has no agent action")
        wish = executing.wish_of(action)
        known = await self.store.read(configurations.candidates)
        found = resolve(wish, known)
        if isinstance(found, Ask):
            payload: Mapping[str, Any] = await self.store.read(enriching.payload_of, row.run.id)
            found = settle(wish, known, await self.selector.select(payload, found.candidates))
        return found

    def _act(self) -> Act:
        return Act(self.worker.me.actor, self.clock.now())
