"""The transactions on runs: leases, cancel, retry, deadlines, sweep and queries.

Every state change goes through the one table of moves. Starting a run is in `starting`, ending it and what follows in
`ending`; this module re-exports both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.lease import LEASE
from lamplighter.domain.runs.model import By, IllegalMove, Mover, RunState, Stage
from lamplighter.kit.ids import IdSource
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.runs.ending import LAST_WORDS, TAKEN, Ending, again, end, end_held, snapshots_of, tell
from lamplighter.services.runs.shapes import as_json, page
from lamplighter.services.runs.starting import AT_ONCE, Taken, adopt, hold, refuse, start, take_due, trigger_of
from lamplighter.services.runs.workers import Started, Worker
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.tx import Tx

__all__ = [
    "AT_ONCE",
    "LAST_WORDS",
    "TAKEN",
    "Ending",
    "Started",
    "Taken",
    "Worker",
    "adopt",
    "as_json",
    "end",
    "end_held",
    "hold",
    "page",
    "refuse",
    "snapshots_of",
    "start",
    "take_due",
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


def over_among(tx: Tx, found: Iterable[str], before: datetime) -> frozenset[str]:
    """Of these runs, those that are deleted or ended by `before`: their processes and sessions may be ended."""
    rows = {run: tx.runs.get(run) for run in found}
    return frozenset(
        run for run, row in rows.items() if row is None or (row.run.ended_at is not None and row.run.ended_at <= before)
    )


def end_if_active(tx: Tx, run: str, ending: Ending, by: By, *, ids: IdSource, act: Act) -> RunRow | None:
    """As `end`, but does nothing and returns None for a run that has ended or is deleted."""
    found = tx.runs.get(run)
    if found is None or found.run.ended:
        return None
    try:
        return end(tx, run, ending, by, ids=ids, act=act)
    except IllegalMove:
        if _locked(tx, run).run.ended:  # another process ended it after the first read; nothing was written here yet
            return None
        raise


def replace_by_policy(tx: Tx, run: str, *, ids: IdSource, act: Act) -> None:
    end_if_active(tx, run, Ending(RunState.CANCELED, "replaced"), By(Mover.POLICY, act.actor), ids=ids, act=act)


def cancel(tx: Tx, run: str, *, reason: str = "canceled", ids: IdSource, act: Act) -> RunRow:
    """End the run for a person and wake its holder at once. Raises IllegalMove for a run that has ended."""
    return end(tx, run, Ending(RunState.CANCELED, reason), By(Mover.PERSON, act.actor), ids=ids, act=act)


def keep_output(tx: Tx, run: str, tail: str) -> None:
    """Save the output of a command whose run another process ended; does nothing for a run that goes on elsewhere."""
    row = tx.runs.lock(run)
    if row is not None and row.run.ended and tail and not row.run.output_tail:
        tx.runs.swap(row.run, RunRow(replace(row.run, output_tail=tail), row.facts))


def retry(tx: Tx, run: str, *, ids: IdSource, act: Act) -> RunRow:
    """Make a new run of the same definition and trigger, linked to the old one. Raises NotEnded, RunUnknown."""
    row = _locked(tx, run)
    return again(tx, row, act.at, ids=ids, act=act)


def time_out(tx: Tx, *, ids: IdSource, act: Act) -> list[str]:
    """End runs past their deadline in any state; returns them. Running agent runs are left to the finalizer."""
    ending, by = Ending(RunState.TIMED_OUT, "deadline_exceeded", Stage.FINALIZER), By(Mover.FINALIZER, act.actor)
    overdue = tx.runs.overdue(act.at, limit=AT_ONCE)
    return [run for run in overdue if end_if_active(tx, run, ending, by, ids=ids, act=act) is not None]


def sweep(tx: Tx, *, ids: IdSource, act: Act) -> int:
    """Add the missing outbox item of runs that wait for a stage without an item or a holder; returns how many."""
    lost = tx.runs.lost(act.at, before=act.at - SWEEP_AFTER, limit=AT_ONCE)
    for run, state, _action in lost:
        kind = ItemKind.COOK if state is RunState.RUNNING else ItemKind.ENQUEUE_EXECUTE
        if state in {RunState.QUEUED, RunState.ENRICHING}:
            kind = ItemKind.ENQUEUE_ENRICH
        tx.outbox.add(new_item(ids.make("out"), kind, stage_of(run, get(tx, run).facts.rig), act.at))
        tx.runs.add_event(NewRunEvent(run, act.at, "item_restored", act.actor, data={"kind": kind.value}))
    return len(lost)


def get(tx: Tx, run: str) -> RunRow:
    row = tx.runs.get(run)
    if row is None:
        raise RunUnknown(run)
    return row


def show(tx: Tx, run: str) -> dict[str, Any]:
    """The run as every surface shows it, with its timeline and artifacts. Raises RunUnknown."""
    return as_json(get(tx, run), tx.runs.events(run), tx.artifacts.of(run))


def _locked(tx: Tx, run: str) -> RunRow:
    row = tx.runs.lock(run)
    if row is None:
        raise RunUnknown(run)
    return row
