"""The transactions on runs: leases, cancel, retry, deadlines, sweep and queries.

Every state change goes through the one table of moves. Starting a run is in `starting`, ending it and what follows in
`ending`; this module re-exports both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.lease import LEASE
from lamplighter.domain.runs.model import By, Mover, Run, RunState, Stage
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.inbox import settling
from lamplighter.services.runs import budgets
from lamplighter.services.runs.continuing import AlreadyAnswered
from lamplighter.services.runs.ending import (
    LAST_WORDS,
    LONGEST_ERROR,
    TAKEN,
    TOLD,
    Ending,
    again,
    end,
    end_held,
    end_if_active,
    snapshots_of,
    tell,
)
from lamplighter.services.runs.starting import AT_ONCE, Taken, adopt, hold, refuse, start, trigger_of
from lamplighter.services.runs.workers import Started, Worker
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

__all__ = [
    "AT_ONCE",
    "LAST_WORDS",
    "LONGEST_ERROR",
    "TAKEN",
    "TOLD",
    "Ending",
    "Started",
    "Taken",
    "Worker",
    "adopt",
    "end",
    "end_held",
    "end_if_active",
    "hold",
    "refuse",
    "snapshots_of",
    "start",
    "tell",
    "trigger_of",
]

SWEEP_AFTER = timedelta(minutes=1)


def renew(tx: Tx, held: Mapping[str, int], owner: str, now: datetime) -> set[str]:
    """Extend these leases, given by run and version; returns the runs that this owner no longer holds."""
    for run, version in sorted(held.items()):
        tx.runs.renew(run, owner, version, until=now + LEASE)
    return lost_among(tx, held, owner)


def lost_among(tx: Tx, held: Mapping[str, int], owner: str) -> set[str]:
    """Of the runs this owner works on, those that ended or went to another holder: it must stop working on them."""
    states = tx.runs.states(held)
    return {
        run for run, version in held.items() if run not in states or states[run] != (RunState.RUNNING, version, owner)
    }


def over_among(
    tx: Tx, found: Iterable[str], before: datetime, *, completed_before: datetime | None = None
) -> frozenset[str]:
    """Of these runs, those that are deleted or ended by `before`: their processes and sessions may be ended.

    One that an agent has completed must have ended by `completed_before` too, if that is given: until then its program
    may finish, and an outbox item ends it.
    """
    rows = {run: tx.runs.get(run) for run in found}

    def is_over(run: Run) -> bool:
        at = run.ended_at
        speaks = completed_before is not None and run.completion_id is not None and at and at > completed_before
        return at is not None and at <= before and not speaks

    return frozenset(run for run, row in rows.items() if row is None or is_over(row))


def cancel(tx: Tx, run: str, *, reason: str = "canceled", ctx: Context) -> Run:
    """End the run for a person and wake its holder at once. Raises IllegalMove for a run that has ended."""
    return end(tx, run, Ending(RunState.CANCELED, reason), By(Mover.PERSON, ctx.actor.name), ctx=ctx)


def keep_output(tx: Tx, run: str, tail: str) -> None:
    """Save the output of a command whose run another process ended; does nothing for a run that goes on elsewhere."""
    row = tx.runs.lock(run)
    if row is not None and row.ended and tail and not row.output_tail:
        tx.runs.swap(row, replace(row, output_tail=tail))


def retry(tx: Tx, run: str, *, ctx: Context) -> Run:
    """Make a new run of the same definition and trigger, linked to the old one, which then needs nobody any more.

    Raises NotEnded, RunUnknown, and AlreadyAnswered for a run that another one goes on with.
    """
    row = locked(tx, run)
    if row.continued_by is not None:
        raise AlreadyAnswered(row)
    made = again(tx, row, ctx.now, ctx=ctx)
    if row.fingerprint:
        tx.runs.judge(run, "")
        settling.of_run(tx, row.fingerprint, "retried", ctx=ctx)
    return made


def retry_if_left(tx: Tx, run: str, *, ctx: Context) -> Run:
    """As `retry`, for a person. Raises BudgetUsedUp too."""
    budgets.must_be_left(tx, get(tx, run), ctx.rules, ctx.now)
    return retry(tx, run, ctx=ctx)


def time_out(tx: Tx, *, ctx: Context) -> list[str]:
    """End runs past their deadline in any state; returns them. Running agent runs are left to the finalizer."""
    ending, by = Ending(RunState.TIMED_OUT, "deadline_exceeded", Stage.FINALIZER), By(Mover.FINALIZER, ctx.actor.name)
    overdue = tx.runs.overdue(ctx.now, limit=AT_ONCE)
    return [run for run in overdue if end_if_active(tx, run, ending, by, ctx=ctx) is not None]


def sweep(tx: Tx, *, ctx: Context) -> int:
    """Add the missing outbox item of runs that wait for a stage without an item or a holder; returns how many."""
    lost = tx.runs.lost(ctx.now, before=ctx.now - SWEEP_AFTER, limit=AT_ONCE)
    for run, state, _action in lost:
        kind = ItemKind.COOK if state is RunState.RUNNING else ItemKind.ENQUEUE_EXECUTE
        if state in {RunState.QUEUED, RunState.ENRICHING}:
            kind = ItemKind.ENQUEUE_ENRICH
        tx.outbox.add(new_item(ctx.ids.make("out"), kind, stage_of(run, get(tx, run).rig), ctx.now))
        tx.runs.add_event(NewRunEvent(run, ctx.now, "item_restored", ctx.actor.name, data={"kind": kind.value}))
    return len(lost)


def get(tx: Tx, run: str) -> Run:
    row = tx.runs.get(run)
    if row is None:
        raise RunUnknown(run)
    return row


def locked(tx: Tx, run: str) -> Run:
    """Raises RunUnknown."""
    row = tx.runs.lock(run)
    if row is None:
        raise RunUnknown(run)
    return row
