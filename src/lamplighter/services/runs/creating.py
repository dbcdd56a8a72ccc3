"""Creating a run together with its tracking bead, its first event, and the outbox item of its first stage."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.model import Run
from lamplighter.kit.records import changed
from lamplighter.services.context import Context
from lamplighter.services.runs.workers import StartGrant, make_running
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

TRACKING_ID = 8
"""Letters of a tracking bead's id: many are made, and the short ids are for beads that people type."""


def add_run(  # noqa: PLR0913  a run and everything that is written with it
    tx: Tx,
    run: Run,
    *,
    prefix: str,
    ctx: Context,
    data: Mapping[str, Any],
    due_at: datetime | None = None,
    start_grant: StartGrant | None = None,
) -> Run:
    """Insert the run with its tracking bead, its first event, and the outbox item that starts it.

    A run that `start_grant` covers is started at once and gets no item.
    """
    made = changed(run, bead=_track(tx, run, prefix, ctx))
    created = NewRunEvent(run.id, ctx.now, "run_created", ctx.actor.name, to_state=run.state, data=data)
    if start_grant is not None and start_grant.takes(run.action, run.rig):
        return make_running(tx, made, start_grant.worker, ctx.now, first=[created], new=True)
    stage = stage_of(run.id, run.rig, run.action)
    tx.outbox.add(new_item(ctx.ids.make("out"), first_item(run.action), stage, due_at or ctx.now))
    tx.runs.insert(made, [created])
    return made


def first_item(action: str) -> ItemKind:
    return ItemKind.ENQUEUE_ENRICH if action == AgentAction.kind else ItemKind.ENQUEUE_EXECUTE


def _track(tx: Tx, run: Run, prefix: str, ctx: Context) -> str:
    """Create the run's tracking bead: never ready work, without `bead.*` events, closed when the run ends."""
    while True:
        bead = f"{prefix}-{ctx.ids.short(TRACKING_ID)}"
        if tx.beads.track(bead, f"automation:{run.automation}", sender=ctx.actor.name, run=run.id, now=ctx.now):
            return bead
