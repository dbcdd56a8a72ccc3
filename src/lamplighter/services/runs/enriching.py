"""The enrichment stage, queued to ready: the payload taken from the trigger is saved with the move and next items."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.artifacts import Artifact
from lamplighter.domain.runs.enrichment import EnrichmentFailed, Occasion
from lamplighter.domain.runs.enrichment import enrich as extract
from lamplighter.domain.runs.lease import LeaseHeld, claim
from lamplighter.domain.runs.model import By, Mover, RunState, Stage, move
from lamplighter.kit.canonical import canonical
from lamplighter.kit.ids import IdSource
from lamplighter.services import outbox
from lamplighter.services.runs import review
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.tx import Tx

STATES = frozenset({RunState.QUEUED, RunState.ENRICHING})


def enrich(tx: Tx, item: Item, worker: review.Worker, *, ids: IdSource, act: Act) -> RunRow | None:
    """Run the whole stage in one transaction; None when there was nothing left to do. Raises NotClaimed."""
    held = begin(tx, item, worker, act.at)
    if held is None:
        return None
    try:
        payload = extract(occasion_of(tx, held))
    except EnrichmentFailed as error:
        return fail(tx, item, held, error, worker, ids=ids, act=act)
    return finish(tx, item, held, payload, worker, ids=ids, act=act)


def begin(tx: Tx, item: Item, worker: review.Worker, now: datetime) -> RunRow | None:
    """Claim the run and make it enriching; a run that a dead worker left enriching is resumed without a second event.

    None when the run is past this stage or another worker holds it.
    """
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.run.state not in STATES:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before.run, lease=claim(before.run.lease, worker.owner, now), last_activity_at=now)
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    if held.state is RunState.QUEUED:
        moved = move(held, RunState.ENRICHING, _by(worker, held.lease.version), now)
        held = moved.run
        review.tell(tx, moved, {"owner": worker.owner, "lease": held.lease.version})
    after = RunRow(held, before.facts)
    tx.runs.swap(before.run, after)
    return after


def finish(  # noqa: PLR0913  a stage's end, and what every transaction of running carries
    tx: Tx, item: Item, held: RunRow, payload: dict[str, Any], worker: review.Worker, *, ids: IdSource, act: Act
) -> RunRow:
    """Write payload, move, events, items and the end of the lease together. Raises LeaseLost, StaleRun, NotClaimed."""
    run = held.run
    body = canonical(payload)
    moved = move(run, RunState.READY, _by(worker, run.lease.version), act.at)
    after = RunRow(moved.run, held.facts)
    tx.runs.swap(run, after)
    tx.runs.keep_enrichment(run.id, body)
    saved = NewRunEvent(
        run.id, act.at, "enrichment_saved", worker.actor, RunState.ENRICHING, RunState.ENRICHING,
        {"payload_size": len(body)},
    )  # fmt: skip
    tx.runs.add_event(saved)
    review.tell(tx, moved)
    outbox.done(tx, item, act.at)
    artifact = {"run": run.id, "artifact": Artifact.ENRICHMENT.value}
    tx.outbox.add(new_item(ids.make("out"), ItemKind.WRITE_ARTIFACT, artifact, act.at))
    tx.outbox.add(new_item(ids.make("out"), ItemKind.ENQUEUE_EXECUTE, stage_of(run.id, held.facts.rig), act.at))
    return after


def fail(  # noqa: PLR0913  a stage's end, and what every transaction of running carries
    tx: Tx, item: Item, held: RunRow, error: EnrichmentFailed, worker: review.Worker, *, ids: IdSource, act: Act
) -> RunRow:
    """Fail the run when its trigger gives nothing to enrich from; a retry would find the same."""
    ending = review.Ending(RunState.FAILED, error.reason, Stage.ENRICHMENT, error=error.message)
    ended = review.end(tx, held.run.id, ending, _by(worker, held.run.lease.version), ids=ids, act=act)
    outbox.done(tx, item, act.at)
    return ended


def occasion_of(tx: Tx, row: RunRow) -> Occasion | None:
    """The run's occasion, read from its trigger event; None when there is no such event any more."""
    run = row.run
    event = None if run.trigger_event is None else tx.trigger_events.get(run.trigger_event)
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


def payload_of(tx: Tx, run: str) -> dict[str, Any]:
    kept = tx.runs.papers(run).enrichment
    found: dict[str, Any] = {} if kept is None else json.loads(kept)
    return found


def _by(worker: review.Worker, version: int) -> By:
    return By(Mover.WORKER, worker.actor, version)
