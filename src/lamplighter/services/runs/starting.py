"""Claiming runs: start one, hold one for a stage, refuse one, or adopt one from a process that died."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.delivery.outbox import Item, ItemKind, malformed, put_off, settle
from lamplighter.domain.delivery.outbox import claim as claim_item
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.lease import LeaseHeld, claim
from lamplighter.domain.runs.model import ACTIVE, By, Mover, RunState
from lamplighter.kit.ids import IdSource
from lamplighter.services import outbox
from lamplighter.services.runs.ending import Ending, end
from lamplighter.services.runs.workers import Started, Worker, made_running, said, told_of_start
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

AT_ONCE = 100


@dataclass(frozen=True)
class _Starting:
    """The locked run rows of one transaction that starts runs, and their trigger events."""

    tx: Tx
    rows: dict[str, RunRow]
    said: dict[str, TriggerEvent]

    @staticmethod
    def of(tx: Tx, items: Sequence[Item]) -> "_Starting":
        rows = tx.runs.lock_some(item.payload["run"] for item in items) if items else {}
        events = [row.run.trigger_event for row in rows.values() if row.run.trigger_event]
        return _Starting(tx, rows, tx.trigger_events.some(events) if events else {})

    def begin(self, found: Item, mine: Item, worker: Worker, now: datetime) -> Started | None:
        """Start the run of an item: `found` is the item as stored, `mine` the item as claimed."""
        before = self.rows.get(mine.payload["run"])
        if before is None or before.run.state is not RunState.READY:
            self.tx.outbox.swap(found, settle(mine, mine.claims), now=now)
            return None
        try:
            after, moved = made_running(before, worker, now)
        except LeaseHeld as error:
            self.tx.outbox.swap(found, put_off(mine, mine.claims, error.lease.expires_at or now), now=now)
            return None
        self.rows[after.run.id] = after
        self.tx.runs.swap(before.run, after)
        self.tx.runs.add_event(told_of_start(moved))
        self.tx.outbox.swap(found, settle(mine, mine.claims), now=now)
        return Started(after, said(after, self.said.get(after.run.trigger_event or "")))


def start(tx: Tx, item: Item, worker: Worker, now: datetime) -> Started | None:
    """Claim the run, make it running and settle its item, in one transaction; None when there is nothing to start.

    While another holder's lease is live, the item is put off until it expires. Raises NotClaimed when the item's claim
    was taken away.
    """
    this = _Starting.of(tx, [item])
    mine = outbox.mine(tx, item)
    return this.begin(mine, mine, worker, now)


@dataclass(frozen=True)
class Taken:
    """The work that a process took from the outbox in one transaction."""

    started: list[Started]
    """Runs of commands, which need no preparation: they are recorded as running now."""
    items: list[Item]
    """All other due items, claimed."""
    next_due_at: datetime | None
    """When the next remaining item is due."""

    def __len__(self) -> int:
        return len(self.started) + len(self.items)


def take_due(
    tx: Tx, worker: Worker, now: datetime, *, limit: int, run: str | None = None, reach: Reach | None = None
) -> Taken:
    """Claim the longest due items, and start the commands among them in the same transaction."""
    due = outbox.due(tx, now, limit=limit, run=run, reach=reach)
    commands = [item for item in due if _is_command(item)]
    items = [outbox.claimed(tx, item, worker.owner, now) for item in due if not _is_command(item)]
    this = _Starting.of(tx, commands)
    started = [this.begin(item, claim_item(item, worker.owner, now), worker, now) for item in commands]
    return Taken([one for one in started if one is not None], items, tx.outbox.next_due_at(reach=reach))


def _is_command(item: Item) -> bool:
    is_exec = item.kind == ItemKind.ENQUEUE_EXECUTE and item.payload.get("action") == ActionKind.EXEC
    return is_exec and not malformed(item.kind, item.payload)


def hold(tx: Tx, item: Item, worker: Worker, now: datetime) -> RunRow | None:
    """Claim a run that is not running yet, for a stage that will move it.

    None when it is running or has ended, which settles the item, or when another holds it, which puts the item off.
    """
    before = tx.runs.lock(item.payload["run"])
    if before is None or before.run.state not in ACTIVE - {RunState.RUNNING}:
        outbox.done(tx, item, now)
        return None
    try:
        held = replace(before.run, lease=claim(before.run.lease, worker.owner, now))
    except LeaseHeld as error:
        outbox.later(tx, item, error.lease.expires_at or now, now)
        return None
    after = RunRow(held, before.facts)
    tx.runs.swap(before.run, after)
    return after


def refuse(tx: Tx, item: Item, ending: Ending, worker: Worker, *, ids: IdSource, act: Act) -> RunRow | None:
    """End a run that cannot be started, and settle its item; None when there was nothing left to end."""
    held = hold(tx, item, worker, act.at)
    if held is None:
        return None
    by = By(Mover.WORKER, worker.actor, held.run.lease.version)
    ended = end(tx, held.run.id, ending, by, ids=ids, act=act)
    outbox.done(tx, item, act.at)
    return ended


def trigger_of(tx: Tx, row: RunRow) -> dict[str, Any]:
    """The run's trigger data, in the form that its action reads from a file."""
    return said(row, None if row.run.trigger_event is None else tx.trigger_events.get(row.run.trigger_event))


def adopt(
    tx: Tx, worker: Worker, now: datetime, *, limit: int = AT_ONCE, rigs: frozenset[str] | None = None
) -> list[RunRow]:
    """Claim running runs of this node whose holder is gone; their processes may be alive or have ended."""
    adopted = []
    for before in tx.runs.orphans(worker.node, now, limit=limit, rigs=rigs):
        lease = claim(before.run.lease, worker.owner, now)
        after = RunRow(replace(before.run, lease=lease, last_activity_at=now), before.facts)
        tx.runs.swap(before.run, after)
        data = {"owner": worker.owner, "lease": lease.version}
        tx.runs.add_event(NewRunEvent(before.run.id, now, "run_adopted", worker.actor, data=data))
        adopted.append(after)
    return adopted
