"""Claiming runs: start one, hold one for a stage, refuse one, or adopt one from a process that died."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.delivery.outbox import Item, ItemKind, malformed, put_off, settle
from lamplighter.domain.delivery.outbox import claim as claim_item
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.lease import LeaseHeld, claim
from lamplighter.domain.runs.model import ACTIVE, MESSAGE, By, Mover, Run, RunState, Stage
from lamplighter.kit.records import record
from lamplighter.services import outbox
from lamplighter.services.context import Context
from lamplighter.services.runs.bounds import Bounds, in_the_way, let_go, lock, next_day, spent
from lamplighter.services.runs.bounds import hold as keep_waiting
from lamplighter.services.runs.ending import Ending, end, lock_automation_of
from lamplighter.services.runs.workers import Started, Worker, make_running, said
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

AT_ONCE = 100


@record
class _Starting:
    """The locked run rows of one transaction that starts runs, and their trigger events."""

    tx: Tx
    rows: dict[str, Run]
    said: dict[str, TriggerEvent]

    @staticmethod
    def of(tx: Tx, items: Sequence[Item]) -> "_Starting":
        rows = tx.runs.lock_some(item.payload["run"] for item in items) if items else {}
        events = [row.trigger_event for row in rows.values() if row.trigger_event]
        return _Starting(tx, rows, tx.trigger_events.some(events) if events else {})

    def begin(self, found: Item, mine: Item, worker: Worker, now: datetime) -> Started | None:
        """Start the run of an item: `found` is the item as stored, `mine` the item as claimed."""
        run = mine.payload["run"]
        after = begin(self.tx, found, mine, self.rows.get(run), worker, now)
        if after is None:
            return None
        self.rows[run] = after
        return Started(after, said(after, self.said.get(after.trigger_event or "")))


def begin(  # noqa: PLR0913  an item, its run, and who takes both
    tx: Tx,
    found: Item,
    mine: Item,
    before: Run | None,
    worker: Worker,
    now: datetime,
    *,
    first: Sequence[NewRunEvent] = (),
) -> Run | None:
    """Make the item's locked run running and settle the item: `found` is the item as stored, `mine` as claimed.

    None when the run does not wait for its start, which settles the item, or when another holds its lease, which puts
    the item off.
    """
    if before is None or before.state is not RunState.READY:
        tx.outbox.swap(found, settle(mine, mine.claims), now=now)
        return None
    try:
        after = make_running(tx, before, worker, now, first=first)
    except LeaseHeld as error:
        tx.outbox.swap(found, put_off(mine, mine.claims, error.lease.expires_at or now), now=now)
        return None
    tx.outbox.swap(found, settle(mine, mine.claims), now=now)
    return after


def start(
    tx: Tx, item: Item, worker: Worker, now: datetime, *, bounds: Bounds | None = None, ctx: Context | None = None
) -> Started | None:
    """Claim the run, make it running and settle its item, in one transaction; None when there is nothing to start.

    While another holder's lease is live, the item is put off until it expires; so it is while `bounds`, which come with
    a context, keep the run waiting. Raises NotClaimed when the item's claim was taken away.
    """
    lock(tx, bounds)
    this = _Starting.of(tx, [item])
    row = this.rows.get(item.payload["run"])
    if bounds is not None and ctx is not None and row is not None and row.state is RunState.READY:
        if kept_back(tx, item, row, worker, bounds, ctx=ctx):
            return None
        this.rows[row.id] = let_go(row, bounds, now)
    mine = outbox.mine(tx, item)
    return this.begin(mine, mine, worker, now)


def kept_back(tx: Tx, item: Item, run: Run, worker: Worker, bounds: Bounds | None, *, ctx: Context) -> bool:
    """Whether the locked run does not start: it is skipped for a budget of the day, or waits. Raises NotClaimed.

    One that tells what a person said waits for the next day: it would be lost.
    """
    over = spent(tx, run, bounds, ctx.now)
    if over is not None and bounds is not None and run.trigger_kind == MESSAGE:
        keep_waiting(tx, item, run, next_day(over, bounds, ctx.now), bounds, ctx=ctx)
        return True
    if over is not None:
        refuse(tx, item, Ending(RunState.SKIPPED, over.reason, Stage.EXECUTION, error=over.message), worker, ctx=ctx)
        return True
    wait = in_the_way(tx, run, bounds, ctx.now)
    if wait is None or bounds is None:
        return False
    keep_waiting(tx, item, run, wait, bounds, ctx=ctx)
    return True


@record
class Taken:
    """The work that a process took from the outbox in one transaction."""

    started: list[Started]
    """Runs of commands, which need no preparation: they are recorded as running now."""
    items: list[Item]
    """All other due items, claimed."""
    next_due_at: datetime | None
    """When the next remaining item is due."""
    enriched: int = 0
    """Runs that were enriched at once; what follows for them is among the items."""
    over: int = 0
    """Items that needed nothing more, and are settled."""

    def __len__(self) -> int:
        return len(self.started) + len(self.items) + self.over


def take(
    tx: Tx, due: Sequence[Item], worker: Worker, now: datetime, *, reach: Reach | None = None, bounded: bool = False
) -> Taken:
    """Claim items that are due and locked, and start the commands among them in the same transaction.

    Where limits keep commands waiting, too (`bounded`), each is started by itself.
    """
    commands = [] if bounded else [item for item in due if _is_command(item)]
    items = [outbox.claimed(tx, item, worker.owner, now) for item in due if bounded or not _is_command(item)]
    this = _Starting.of(tx, commands)
    started = [this.begin(item, claim_item(item, worker.owner, now), worker, now) for item in commands]
    return Taken([one for one in started if one is not None], items, outbox.next_due_at(tx, reach=reach))


def _is_command(item: Item) -> bool:
    is_exec = item.kind == ItemKind.ENQUEUE_EXECUTE and item.payload.get("action") == ActionKind.EXEC
    return is_exec and not malformed(item.kind, item.payload)


def hold(tx: Tx, item: Item, worker: Worker, now: datetime) -> Run | None:
    """Claim a run that is not running yet, for a stage that will move it.

    None when it is running or has ended, which settles the item, or when another holds it, which puts the item off.
    """
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.state not in ACTIVE - {RunState.RUNNING}:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before, lease=claim(before.lease, worker.owner, now))
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    after = held
    tx.runs.swap(before, after)
    return after


def refuse(
    tx: Tx, item: Item, ending: Ending, worker: Worker, *, ctx: Context, event: NewRunEvent | None = None
) -> Run | None:
    """End a run that cannot be started, and settle its item; None when there was nothing left to end.

    `event` comes before the end in the run's timeline.
    """
    lock_automation_of(tx, item.payload["run"])
    held = hold(tx, item, worker, ctx.now)
    if held is None:
        return None
    if event is not None:
        tx.runs.add_event(event)
    by = By(Mover.WORKER, worker.actor, held.lease.version)
    ended = end(tx, held.id, ending, by, ctx=ctx)
    outbox.done(tx, item, ctx.now)
    return ended


def trigger_of(tx: Tx, row: Run) -> dict[str, Any]:
    """The run's trigger data, in the form that its action reads from a file."""
    return said(row, None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event))


def adopt(
    tx: Tx, worker: Worker, now: datetime, *, limit: int = AT_ONCE, rigs: frozenset[str] | None = None
) -> list[Run]:
    """Claim running runs of this node whose holder is gone; their processes may be alive or have ended."""
    adopted = []
    for before in tx.runs.orphans(worker.node, now, limit=limit, rigs=rigs):
        lease = claim(before.lease, worker.owner, now)
        after = replace(before, lease=lease, last_activity_at=now)
        tx.runs.swap(before, after)
        data = {"owner": worker.owner, "lease": lease.version}
        tx.runs.add_event(NewRunEvent(before.id, now, "run_adopted", worker.actor, data=data))
        adopted.append(after)
    return adopted
