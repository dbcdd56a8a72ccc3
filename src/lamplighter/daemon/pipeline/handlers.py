"""Handles outbox items by kind; each handler settles its item in its own transaction."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.daemon.pipeline.agent_handlers import AgentHandlers
from lamplighter.daemon.pipeline.bulk_parts import BulkParts
from lamplighter.daemon.pipeline.limits import GroupLimits
from lamplighter.daemon.pipeline.notices import NoticeSender
from lamplighter.daemon.pipeline.slack import IN_SLACK, SlackHandlers
from lamplighter.daemon.pipeline.worker import Worker
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.automations.model import Formula as FormulaAction
from lamplighter.domain.beads.formulas import Formula, Plan, plan
from lamplighter.domain.delivery.outbox import Item, ItemKind, NotClaimed, malformed
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.kit import log
from lamplighter.kit.clock import Clock
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.ids import IdSource
from lamplighter.ports.beads import BeadStore
from lamplighter.services import outbox
from lamplighter.services.context import Configured, acting
from lamplighter.services.deliveries import processing
from lamplighter.services.runs import cooking, review
from lamplighter.store.errors import StoreUnavailable
from lamplighter.store.tx import Store

FindFormula = Callable[[str, str | None], Formula]
"""A formula by name, as the layers of a rig or of the city define it. Raises LampError."""


@dataclass
class Handlers:
    store: Store
    clock: Clock
    ids: IdSource
    active: ActiveConfig
    worker: Worker
    formula: FindFormula
    beads: Callable[[], BeadStore]
    """Returns the external bead store of a city that has one."""
    agents: AgentHandlers
    notices: NoticeSender
    slack: SlackHandlers | None = None
    limits: GroupLimits = field(init=False)

    def __post_init__(self) -> None:
        self.limits = GroupLimits(self.active)

    async def handle(self, item: Item) -> bool:
        """Do the item's work. A failure is tried again later; an item that can never succeed fails at once, visibly.

        False if an answer of the database was lost, so that this process may hold more than it knows of.
        """
        try:
            told = malformed(item.kind, item.payload)
            if told:
                return await self._failed(item, told, permanent=True)
            kind = ItemKind(item.kind)
            async with self.limits.room(kind):
                await self._dispatch(item, kind)
        except NotClaimed:
            log.get().info("outbox.claim_lost", item=item.id, kind=item.kind)
        except StoreUnavailable as error:  # costs no attempt: the item is given back once the database answers
            log.get().warning("outbox.waits", item=item.id, kind=item.kind, error=error.message)
            return False
        except LampError as error:
            return await self._failed(item, error.message)
        except Exception as error:  # noqa: BLE001  one item's bug must not stop the others; it is kept on the item
            log.get().error("outbox.failed", item=item.id, kind=item.kind, exc_info=error)
            return await self._failed(item, f"{type(error).__name__}: {error}")
        return True

    async def stop(self) -> None:
        """Cut short what could take long and may be repeated: what goes to destinations that hang."""
        await asyncio.gather(self.notices.stop(), *([] if self.slack is None else [self.slack.stop()]))

    async def _dispatch(self, item: Item, kind: ItemKind) -> None:  # noqa: C901  a table of kinds
        match kind:
            case ItemKind.ENQUEUE_EXECUTE:
                await self._execute(item)
            case ItemKind.PROCESS_DELIVERY:
                await self._deliver(item)
            case ItemKind.ENQUEUE_ENRICH:
                await self.agents.enrich(item)
            case ItemKind.COOK:
                await self._cook_elsewhere(item)
            case ItemKind.WRITE_ARTIFACT:
                await self.agents.write_artifact(item)
            case ItemKind.STOP_SESSION:
                await self.agents.stop_session(item)
            case ItemKind.NOTIFY_RUN_TERMINAL:
                await self.notices.tell_success(item)
            case ItemKind.NOTIFY_SESSION_COMPLETE:
                await self.notices.tell_session(item)
            case ItemKind.SEND_NOTICE:
                await self.notices.send(item)
            case ItemKind.BULK_PART:
                await BulkParts(self.store, self.clock, self.ids, self.worker.me.actor, self._configured).work(item)
            case kind if kind in IN_SLACK and self.slack is not None:
                await self.slack.handle(item, kind)
            case other:
                await self._failed(item, f"nothing here handles {other}", permanent=True)

    def _configured(self) -> Configured:
        return Configured(self.active.city, self.active.rules)

    async def _execute(self, item: Item) -> None:
        row = await self.store.read(lambda tx: tx.runs.get(item.payload["run"]))
        if row is None or row.ended:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        match ActionKind(row.action):
            case ActionKind.EXEC:
                await self._start(item)
            case ActionKind.FORMULA:
                await self._cook(item, row)
            case ActionKind.AGENT:
                await self.agents.execute(item, row)

    async def _deliver(self, item: Item) -> None:
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        try:
            await self.store.transact(processing.process, item, rules=self.active.rules, ctx=ctx)
        except (NotClaimed, StoreUnavailable):
            raise
        except Exception as error:
            if len(processing.deliveries_of(item)) == 1:
                raise
            log.get().warning("deliveries.apart", item=item.id, exc_info=error)
            await self.store.transact(processing.process_each, item, ctx)

    async def _start(self, item: Item) -> None:
        now, bounds = self.clock.now(), None
        if self.active.bounds_commands:
            bounds = await self.agents.memory.bounds()
        ctx = acting(self.worker.me.actor, now, self.ids)
        started = await self.store.transact(review.start, item, self.worker.me, now, bounds=bounds, ctx=ctx)
        if started is not None:
            self.worker.begin(started.row, started.trigger)

    async def _cook(self, item: Item, row: Run) -> None:
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        if not self.active.rules.own_beads:
            await self.store.transact(cooking.cook_elsewhere, item, self.worker.me, ctx=ctx)
            return
        try:
            planned = await asyncio.to_thread(self._plan, row)
        except Unavailable:
            raise
        except LampError as error:
            await self._refuse(item, "cook_failed", error.message)
            return
        prefix = self.active.rules.prefix_of(row.rig)
        await self.store.transact(cooking.cook, item, planned, self.worker.me, prefix=prefix, ctx=ctx)
        crash_point(CrashPoint.RUN_AFTER_COOKED)

    async def _cook_elsewhere(self, item: Item) -> None:
        """May be repeated: the external store is asked for the run's wisp before one is made."""
        row = await self.store.read(lambda tx: tx.runs.get(item.payload["run"]))
        if row is None or row.state is not RunState.RUNNING or row.wisp is not None:
            await self.store.transact(outbox.done, item, self.clock.now())
            return
        try:
            planned = await asyncio.to_thread(self._plan, row)
        except Unavailable:
            raise
        except LampError as error:
            await self._failed(item, error.message, permanent=True)
            return
        routed = cooking.routed(planned, row, await self.store.read(cooking.event_seq, row))
        crash_point(CrashPoint.COOK_BEFORE_SEND)
        wisp = await asyncio.to_thread(lambda: self.beads().cook(routed, rig=row.rig))
        crash_point(CrashPoint.COOK_AFTER_SEND)
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        await self.store.transact(cooking.cooked_elsewhere, item, wisp, ctx)

    def _plan(self, row: Run) -> Plan:
        action = review.snapshots_of(row).action
        assert isinstance(action, FormulaAction)  # noqa: S101  the row's own kind says so
        return plan(self.formula(action.formula, row.rig), title=None, values=action.variables)

    async def _refuse(self, item: Item, reason: str, error: str) -> None:
        ending = review.Ending(RunState.FAILED, reason, Stage.EXECUTION, error=error)
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        await self.store.transact(review.refuse, item, ending, self.worker.me, ctx=ctx)

    async def _failed(self, item: Item, error: str, *, permanent: bool = False) -> bool:
        """Record the failure; False if the database does not say whether it did."""
        ctx = acting(self.worker.me.actor, self.clock.now(), self.ids)
        try:
            await self.store.transact(outbox.failed, item, error, permanent=permanent, ctx=ctx)
        except NotClaimed:
            log.get().info("outbox.claim_lost", item=item.id, kind=item.kind)
        except StoreUnavailable as gone:
            log.get().warning("outbox.not_settled", item=item.id, error=gone.message)
            return False
        except LampError as gone:  # the claim is recovered once it is old
            log.get().warning("outbox.not_settled", item=item.id, error=gone.message)
        return True
