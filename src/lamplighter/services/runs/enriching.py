"""The enrichment stage, queued to ready: the payload taken from the trigger is saved with the move and next items."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item, settle
from lamplighter.domain.delivery.outbox import claim as claim_item
from lamplighter.domain.delivery.reach import Reach, stage_of
from lamplighter.domain.runs.artifacts import Artifact
from lamplighter.domain.runs.enrichment import EnrichmentFailed, Occasion
from lamplighter.domain.runs.enrichment import enrich as extract
from lamplighter.domain.runs.lease import LeaseHeld, claim
from lamplighter.domain.runs.model import MESSAGE, By, Mover, Run, RunState, Stage, move
from lamplighter.kit.canonical import canonical
from lamplighter.kit.records import changed, record
from lamplighter.services import outbox
from lamplighter.services.context import Context
from lamplighter.services.runs import review
from lamplighter.services.runs.ending import lock_automation_of
from lamplighter.services.runs.turns import told_by
from lamplighter.services.runs.workers import told
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

STATES = frozenset({RunState.QUEUED, RunState.ENRICHING})


@record
class Enriched:
    """What came of runs that were enriched in the transaction that took their items."""

    left: list[Item]
    """The items of the others: their own handling says why they fail, or settles them."""
    follows: list[Item]
    """What follows for those that were enriched, claimed; all but what this process cannot take."""
    count: int


def enrich_some(tx: Tx, items: Sequence[Item], worker: review.Worker, *, reach: Reach | None, ctx: Context) -> Enriched:
    """As `enrich`, for the runs of items that are due and locked, as far as each needs nothing but the move itself."""
    rows = tx.runs.lock_some(item.payload["run"] for item in items) if items else {}
    named = [row.trigger_event for row in rows.values() if row.trigger_event]
    events = tx.trigger_events.some(named) if named else {}
    left: list[Item] = []
    follows: list[Item] = []
    bodies: dict[str, str] = {}
    for item in items:
        before = rows.get(item.payload["run"])
        payload = None if before is None else _payload(before, events, ctx.now)
        if before is None or payload is None:
            left.append(item)
            continue
        body = bodies[before.id] = canonical(payload)
        rows[before.id] = _made_ready(tx, before, body, worker, ctx.now)
        mine = claim_item(item, worker.owner, ctx.now)
        tx.outbox.swap(item, settle(mine, mine.claims), now=ctx.now)
        for made in _following(before, ctx):
            taken = reach is None or reach.takes(made.kind, made.payload)
            tx.outbox.add(claim_item(made, worker.owner, ctx.now) if taken else made)
            follows += [claim_item(made, worker.owner, ctx.now)] if taken else []
    for run, body in bodies.items():
        tx.runs.keep_enrichment(run, body)
    return Enriched(left, follows, len(bodies))


def _payload(row: Run, events: Mapping[str, TriggerEvent], now: datetime) -> dict[str, Any] | None:
    """None for a run that is not to be enriched now, or whose trigger gives nothing to enrich from."""
    if row.state not in STATES or row.lease.live(now):
        return None
    try:
        return extract(_occasion(row, events.get(row.trigger_event or "")))
    except Exception:  # noqa: BLE001  its own handling finds the same and tells it; the others must not wait for it
        return None


def _made_ready(tx: Tx, before: Run, body: str, worker: review.Worker, now: datetime) -> Run:
    """Make the run enriching and ready in one step; its timeline shows both."""
    held = changed(before, lease=claim(before.lease, worker.owner, now), last_activity_at=now)
    by, timeline = _by(worker, held.lease.version), []
    if held.state is RunState.QUEUED:
        moved = move(held, RunState.ENRICHING, by, now)
        timeline.append(told(moved, {"owner": worker.owner, "lease": held.lease.version}))
        held = moved.run
    ready = move(held, RunState.READY, by, now)
    tx.runs.swap(before, ready.run)
    for event in (*timeline, _saved(held, body, worker, now), told(ready)):
        tx.runs.add_event(event)
    return ready.run


def _saved(run: Run, body: str, worker: review.Worker, now: datetime) -> NewRunEvent:
    here, size = RunState.ENRICHING, {"payload_size": len(body)}
    return NewRunEvent(run.id, now, "enrichment_saved", worker.actor, here, here, size)


def _following(run: Run, ctx: Context) -> tuple[Item, Item]:
    artifact = {"run": run.id, "artifact": Artifact.ENRICHMENT.value}
    return (
        new_item(ctx.ids.make("out"), ItemKind.WRITE_ARTIFACT, artifact, ctx.now),
        new_item(ctx.ids.make("out"), ItemKind.ENQUEUE_EXECUTE, stage_of(run.id, run.rig), ctx.now),
    )


def enrich(tx: Tx, item: Item, worker: review.Worker, *, ctx: Context) -> Run | None:
    """Run the whole stage in one transaction; None when there was nothing left to do. Raises NotClaimed."""
    found = _extracted(tx, item.payload["run"])
    if isinstance(found, EnrichmentFailed):
        lock_automation_of(tx, item.payload["run"])  # it is about to end
    held = begin(tx, item, worker, ctx.now)
    if held is None:
        return None
    if isinstance(found, EnrichmentFailed):
        return fail(tx, item, held, found, worker, ctx=ctx)
    return finish(tx, item, held, found, worker, ctx=ctx)


def _extracted(tx: Tx, run: str) -> dict[str, Any] | EnrichmentFailed:
    """The payload, read before the run is locked: what a run is enriched from does not change."""
    row = tx.runs.get(run)
    try:
        return extract(None if row is None else occasion_of(tx, row))
    except EnrichmentFailed as error:
        return error


def begin(tx: Tx, item: Item, worker: review.Worker, now: datetime) -> Run | None:
    """Claim the run and make it enriching; a run that a dead worker left enriching is resumed without a second event.

    None when the run is past this stage or another worker holds it.
    """
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.state not in STATES:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before, lease=claim(before.lease, worker.owner, now), last_activity_at=now)
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    if held.state is RunState.QUEUED:
        moved = move(held, RunState.ENRICHING, _by(worker, held.lease.version), now)
        held = moved.run
        review.tell(tx, moved, {"owner": worker.owner, "lease": held.lease.version})
    after = held
    tx.runs.swap(before, after)
    return after


def finish(tx: Tx, item: Item, held: Run, payload: dict[str, Any], worker: review.Worker, *, ctx: Context) -> Run:
    """Write payload, move, events, items and the end of the lease together. Raises LeaseLost, StaleRun, NotClaimed."""
    run = held
    body = canonical(payload)
    moved = move(run, RunState.READY, _by(worker, run.lease.version), ctx.now)
    after = moved.run
    tx.runs.swap(run, after)
    tx.runs.keep_enrichment(run.id, body)
    tx.runs.add_event(_saved(run, body, worker, ctx.now))
    review.tell(tx, moved)
    outbox.done(tx, item, ctx.now)
    for made in _following(run, ctx):
        tx.outbox.add(made)
    return after


def fail(tx: Tx, item: Item, held: Run, error: EnrichmentFailed, worker: review.Worker, *, ctx: Context) -> Run:
    """Fail the run when its trigger gives nothing to enrich from; a retry would find the same."""
    ending = review.Ending(RunState.FAILED, error.reason, Stage.ENRICHMENT, error=error.message)
    ended = review.end(tx, held.id, ending, _by(worker, held.lease.version), ctx=ctx)
    outbox.done(tx, item, ctx.now)
    return ended


def occasion_of(tx: Tx, row: Run) -> Occasion | None:
    """The run's occasion, read from its trigger event; None when there is no such event any more."""
    return _occasion(row, None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event))


def _occasion(run: Run, event: TriggerEvent | None) -> Occasion | None:
    if event is None:
        return None
    said = dict(event.payload or {})
    context = said.get("context")
    return Occasion(
        automation=run.automation,
        kind=run.trigger_kind,
        provider=str(said.get("provider") or ""),
        event_type=said.get("event_type"),
        external_id=said.get("external_id"),
        slot=event.slot,
        note=review.snapshots_of(run).description,
        events=said.get("events") or (),
        parsed=context if context is not None else None,
    )


def work_of(tx: Tx, row: Run) -> dict[str, Any]:
    """What the run is about, for a model that chooses where it works: its enrichment, or what somebody said."""
    found = payload_of(tx, row.id)
    if row.trigger_kind != MESSAGE:
        return found
    said = told_by(tx, row)
    return found | {"summary": {"title": said[:200], "description": said}}


def payload_of(tx: Tx, run: str) -> dict[str, Any]:
    kept = tx.runs.papers(run).enrichment
    found: dict[str, Any] = {} if kept is None else json.loads(kept)
    return found


def _by(worker: review.Worker, version: int) -> By:
    return By(Mover.WORKER, worker.actor, version)
