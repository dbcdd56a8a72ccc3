"""Formula runs: their wisp is cooked in the city's own store or in an outside one, and the run ends when it closes."""

from dataclasses import replace

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import TriggerKind
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.lease import void
from lamplighter.domain.runs.model import By, Mover, Run, RunState
from lamplighter.domain.runs.tracking import OF_AUTOMATION
from lamplighter.kit.ids import IdSource
from lamplighter.services import formulas, outbox
from lamplighter.services.runs.review import AT_ONCE, Ending, Worker, end_if_active, snapshots_of, start
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.tx import Tx


def cook(  # noqa: PLR0913  what cooking needs, and what every transaction of running carries
    tx: Tx, item: Item, plan: Plan, worker: Worker, *, prefix: str, ids: IdSource, act: Act
) -> RunRow | None:
    """Start a formula run in the city's own store: cook the wisp, move the run and settle the item in one transaction.

    None when there is nothing left to start.
    """
    started = start(tx, item, worker, act.at)
    if started is None:
        return None
    run = started.row.run
    inside = Act(act.actor, act.at, run.id)
    wisp = formulas.cook(tx, routed(plan, started.row, event_seq(tx, run)), prefix=prefix, ids=ids, act=inside)
    return cooked(tx, started.row, wisp, act=inside)


def cooked(tx: Tx, row: RunRow, wisp: Bead, *, elsewhere: bool = False, act: Act) -> RunRow:
    """Record the run's wisp and give up the lease: the run waits for the wisp's end without a holder."""
    before = row.run
    waiting = replace(before, lease=void(before.lease), last_activity_at=act.at)
    after = RunRow(waiting, replace(row.facts, wisp=wisp.id, wisp_elsewhere=elsewhere))
    tx.runs.swap(before, after)
    tx.runs.add_event(NewRunEvent(before.id, act.at, "wisp_cooked", act.actor, data={"wisp": wisp.id}))
    payload = {"run": before.id, "wisp": wisp.id}
    tx.events.append(act.event("automation.completed", subject=before.automation, message=wisp.title, payload=payload))
    return after


def cook_elsewhere(tx: Tx, item: Item, worker: Worker, *, ids: IdSource, act: Act) -> RunRow | None:
    """Start a formula run whose wisp goes to an outside store; a separate COOK item cooks it and is retried."""
    started = start(tx, item, worker, act.at)
    if started is None:
        return None
    before = started.row
    freed = replace(before.run, lease=void(before.run.lease))
    after = RunRow(freed, before.facts)
    tx.runs.swap(before.run, after)
    tx.outbox.add(new_item(ids.make("out"), ItemKind.COOK, stage_of(freed.id, after.facts.rig), act.at))
    return after


def cooked_elsewhere(tx: Tx, item: Item, wisp: Bead, act: Act) -> None:
    """Record the wisp if the run is still running without one, and settle the item. Raises NotClaimed."""
    row = tx.runs.lock(item.payload["run"])
    if row is not None and row.run.state is RunState.RUNNING and row.facts.wisp is None:
        cooked(tx, row, wisp, elsewhere=True, act=Act(act.actor, act.at, row.run.id))
    outbox.done(tx, item, act.at)


def routed(plan: Plan, row: RunRow, seq: int | None) -> Plan:
    """The plan with an ephemeral root, labelled with its automation and run, its pool, and the last event it covers."""
    automation = snapshots_of(row.run)
    labels = [f"{OF_AUTOMATION}{row.run.automation}", f"run:{row.run.id}"]
    if automation.pool is not None:
        labels.append(f"pool:{automation.pool}")
    if seq is not None:
        labels += [f"automation:{row.run.automation}", f"seq:{seq}"]
    return replace(plan, root=replace(plan.root, labels=(*plan.root.labels, *labels), ephemeral=True))


def end_wisps(tx: Tx, *, ids: IdSource, act: Act) -> list[Run]:
    """End the formula runs whose wisp was closed; returns those it ended."""
    found = [end_wisp(tx, run, closed=closed, ids=ids, act=act) for run, closed in tx.runs.wisps_ended(limit=AT_ONCE)]
    return [run for run in found if run is not None]


def end_wisp(tx: Tx, run: str, *, closed: bool, ids: IdSource, act: Act) -> Run | None:
    """End the run: succeeded when its wisp was closed, failed when it is gone. None for a run that had ended."""
    ending = Ending(RunState.SUCCEEDED, "wisp_closed") if closed else Ending(RunState.FAILED, "wisp_gone")
    row = end_if_active(tx, run, ending, By(Mover.COMPLETION, act.actor), ids=ids, act=act)
    return None if row is None else row.run


def event_seq(tx: Tx, run: Run) -> int | None:
    """The seq of the last event that an event-gated run covers; None for other runs."""
    if run.trigger_kind != TriggerKind.EVENT or run.trigger_event is None:
        return None
    event = tx.trigger_events.get(run.trigger_event)
    slot = None if event is None else event.slot
    return int(slot.removeprefix("seq:")) if slot and slot.startswith("seq:") else None
