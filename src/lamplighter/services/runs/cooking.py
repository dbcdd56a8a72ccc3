"""Formula runs: their wisp is cooked in the city's own store or in an outside one, and the run ends when it closes."""

from dataclasses import replace

from lamplighter.domain.automations.model import TriggerKind
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.lease import void
from lamplighter.domain.runs.model import By, Mover, Run, RunState
from lamplighter.domain.runs.tracking import OF_AUTOMATION
from lamplighter.services import formulas, outbox
from lamplighter.services.context import Context
from lamplighter.services.runs.review import AT_ONCE, Ending, Worker, end_if_active, snapshots_of, start
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx


def cook(tx: Tx, item: Item, plan: Plan, worker: Worker, *, prefix: str, ctx: Context) -> Run | None:
    """Start a formula run in the city's own store: cook the wisp, move the run and settle the item in one transaction.

    None when there is nothing left to start.
    """
    started = start(tx, item, worker, ctx.now)
    if started is None:
        return None
    run = started.row
    inside = ctx.inside(run.id)
    wisp = formulas.cook(tx, routed(plan, started.row, event_seq(tx, run)), prefix=prefix, ctx=inside)
    return cooked(tx, started.row, wisp, ctx=inside)


def cooked(tx: Tx, row: Run, wisp: Bead, *, elsewhere: bool = False, ctx: Context) -> Run:
    """Record the run's wisp and give up the lease: the run waits for the wisp's end without a holder."""
    before = row
    after = replace(before, lease=void(before.lease), last_activity_at=ctx.now, wisp=wisp.id, wisp_elsewhere=elsewhere)
    tx.runs.swap(before, after)
    tx.runs.add_event(NewRunEvent(before.id, ctx.now, "wisp_cooked", ctx.actor.name, data={"wisp": wisp.id}))
    payload = {"automation": before.automation, "run": before.id, "attempt": before.attempt, "wisp": wisp.id}
    tx.events.append(ctx.event("automation.completed", subject=before.automation, message=wisp.title, payload=payload))
    return after


def cook_elsewhere(tx: Tx, item: Item, worker: Worker, *, ctx: Context) -> Run | None:
    """Start a formula run whose wisp goes to an outside store; a separate COOK item cooks it and is retried."""
    started = start(tx, item, worker, ctx.now)
    if started is None:
        return None
    before = started.row
    after = replace(before, lease=void(before.lease))
    tx.runs.swap(before, after)
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.COOK, stage_of(after.id, after.rig), ctx.now))
    return after


def cooked_elsewhere(tx: Tx, item: Item, wisp: Bead, ctx: Context) -> None:
    """Record the wisp, unless the run has one, and settle the item. Raises NotClaimed.

    A run that ended while its wisp was being cooked names it too, so that whoever cleans up finds it.
    """
    row = tx.runs.lock(item.payload["run"])
    if row is not None and row.wisp is None and row.state is RunState.RUNNING:
        cooked(tx, row, wisp, elsewhere=True, ctx=ctx.inside(row.id))
    elif row is not None and row.wisp is None and row.ended:
        tx.runs.swap(row, replace(row, wisp=wisp.id, wisp_elsewhere=True))
        tx.runs.add_event(NewRunEvent(row.id, ctx.now, "wisp_cooked", ctx.actor.name, data={"wisp": wisp.id}))
    outbox.done(tx, item, ctx.now)


def routed(plan: Plan, row: Run, seq: int | None) -> Plan:
    """The plan with an ephemeral root, labelled with its automation and run, its pool, and the last event it covers."""
    automation = snapshots_of(row)
    labels = [f"{OF_AUTOMATION}{row.automation}", f"run:{row.id}"]
    if automation.pool is not None:
        labels.append(f"pool:{automation.pool}")
    if seq is not None:
        labels += [f"automation:{row.automation}", f"seq:{seq}"]
    return replace(plan, root=replace(plan.root, labels=(*plan.root.labels, *labels), ephemeral=True))


def end_wisps(tx: Tx, *, ctx: Context) -> list[Run]:
    """End the formula runs whose wisp was closed; returns those it ended."""
    found = [end_wisp(tx, run, closed=closed, ctx=ctx) for run, closed in tx.runs.wisps_ended(limit=AT_ONCE)]
    return [run for run in found if run is not None]


def end_wisp(tx: Tx, run: str, *, closed: bool, ctx: Context) -> Run | None:
    """End the run: succeeded when its wisp was closed, failed when it is gone. None for a run that had ended."""
    ending = Ending(RunState.SUCCEEDED, "wisp_closed") if closed else Ending(RunState.FAILED, "wisp_gone")
    row = end_if_active(tx, run, ending, By(Mover.COMPLETION, ctx.actor.name), ctx=ctx)
    return None if row is None else row


def event_seq(tx: Tx, run: Run) -> int | None:
    """The seq of the last event that an event-gated run covers; None for other runs."""
    if run.trigger_kind != TriggerKind.EVENT or run.trigger_event is None:
        return None
    event = tx.trigger_events.get(run.trigger_event)
    slot = None if event is None else event.slot
    return int(slot.removeprefix("seq:")) if slot and slot.startswith("seq:") else None
