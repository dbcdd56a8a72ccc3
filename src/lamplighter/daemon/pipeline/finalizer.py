"""Finds runs that no worker ends: past their deadline, with a closed wisp, or lost between two stages."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lamplighter.daemon.pipeline.agent_sessions import AgentRuns
from lamplighter.domain.beads.model import Bead, BeadNotFound, BeadStatus
from lamplighter.domain.runs.budget import Spent
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.verdict import Leave, verdict
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError
from lamplighter.kit.ids import IdSource
from lamplighter.ports.beads import BeadStore
from lamplighter.services.context import acting
from lamplighter.services.runs import cooking, finalizing, review
from lamplighter.store.tx import Store, Tx

ACTOR = "finalizer"


@dataclass(frozen=True)
class Finalizer:
    store: Store
    clock: Clock
    ids: IdSource
    beads: Callable[[], BeadStore]
    agents: AgentRuns | None = None

    async def tick(self) -> None:
        """End runs past their deadline in any state, judge agent runs, and restore outbox items.

        A run that waits for a stage with neither an item nor a holder gets its item back.
        """
        if await self.store.read(_nothing_active):
            return
        ctx = acting(ACTOR, self.clock.now(), self.ids)
        for run in await self.store.transact(review.time_out, ctx=ctx):
            log.get().info("runs.timed_out", run=run, reason="deadline_exceeded")
        await self.judge()
        restored = await self.store.transact(review.sweep, ctx=ctx)
        if restored:
            log.get().info("outbox.items_restored", count=restored)

    async def judge(self) -> list[str]:
        """Judge agent runs that are past their deadline or silent for long, one by one; returns those it ended."""
        if self.agents is None:
            return []
        found = await self.store.read(finalizing.candidates, self.clock.now(), self.agents.active.city.runs)
        return [row.id for row in found if await self._judged(row, self.agents)]

    async def _judged(self, row: Run, agents: AgentRuns) -> bool:
        session = None
        if row.node == agents.me.node and row.session_id is not None:
            try:
                session = await agents.look(row)
            except LampError as error:
                log.get().warning("finalizer.cannot_ask", run=row.id, error=error.message)
        policy = finalizing.policy_of(review.snapshots_of(row), agents.active.city.runs)
        spent = Spent(row.tokens or 0, row.cost)
        judged = verdict(row, session, self.clock.now(), policy, spent=spent)
        ctx = acting(ACTOR, self.clock.now(), self.ids)
        ended = await self.store.transact(finalizing.settle, row.id, judged, ctx=ctx)
        if ended and not isinstance(judged, Leave):
            state = finalizing.ending_of(judged).state.value
            log.get().info("finalizer.ended_run", run=row.id, verdict=state, reason=judged.reason)
        return ended

    async def end_wisps(self) -> int:
        """End formula runs whose wisp in the city's own store was closed; returns how many."""
        if not await self.store.read(lambda tx: tx.runs.wisps_ended(limit=1)):
            return 0
        ended = await self.store.transact(cooking.end_wisps, ctx=acting(ACTOR, self.clock.now(), self.ids))
        for run in ended:
            _tell_wisp(run)
        return len(ended)

    def _get(self, wisp: str) -> Bead:
        return self.beads().get(wisp)

    async def look_elsewhere(self) -> None:
        """End formula runs whose wisp in an external store was closed or is gone; asks for each wisp, every patrol."""
        for run, wisp in await self.store.read(lambda tx: tx.runs.wisps_elsewhere(limit=review.AT_ONCE)):
            try:
                bead = await asyncio.to_thread(self._get, wisp)
            except BeadNotFound:
                closed = False
            else:
                if bead.status is not BeadStatus.CLOSED:
                    continue
                closed = True
            ctx = acting(ACTOR, self.clock.now(), self.ids)
            ended = await self.store.transact(cooking.end_wisp, run, closed=closed, ctx=ctx)
            if ended is not None:
                _tell_wisp(ended)


def _tell_wisp(run: Run) -> None:
    log.get().info("finalizer.ended_run", run=run.id, verdict=run.state.value, reason=run.reason)


def _nothing_active(tx: Tx) -> bool:
    return not tx.runs.any_active()
