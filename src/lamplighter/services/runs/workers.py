"""Workers of runs, and the one way in which a run becomes running."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs import tracing
from lamplighter.domain.runs.lease import claim
from lamplighter.domain.runs.model import By, Moved, Mover, Run, RunState, move
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import changed, record
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

TOPIC = "runs"
"""The wake-up for those who show runs; whatever else happens to a run is told by an event too."""


@record
class Worker:
    """A worker: the owner whose proof of life backs its leases, its node, and its name as an actor."""

    owner: str
    node: str
    actor: str = "worker"


@record
class Started:
    row: Run
    trigger: dict[str, Any]
    """The trigger data, in the form that the run's action reads from a file."""


@record
class StartGrant:
    """Lets a firing transaction start up to `room` command runs itself, for `worker` and within its reach."""

    worker: Worker
    room: int
    reach: Reach | None = None

    def takes(self, action: str, rig: str | None) -> bool:
        if self.room <= 0 or action != ActionKind.EXEC:
            return False
        if self.reach is None:
            return True
        return ItemKind.ENQUEUE_EXECUTE not in self.reach.left_out and (not rig or rig in self.reach.rigs)


def make_running(
    tx: Tx, row: Run, worker: Worker, now: datetime, *, first: Sequence[NewRunEvent] = (), new: bool = False
) -> Run:
    """Claim the run's lease, make it running on the worker's node, and write row and run events.

    Every run becomes running here and nowhere else. The events in `first` come before the start in its timeline. A run
    that is `new` is inserted, because the transaction that fires it also starts it. Raises LeaseHeld or IllegalMove,
    before anything is written.
    """
    lease = claim(row.lease, worker.owner, now)
    moved = move(changed(row, lease=lease), RunState.RUNNING, By(Mover.WORKER, worker.actor, lease.version), now)
    after = changed(moved.run, node=worker.node)
    events = [*first, told(moved, {"owner": worker.owner, "lease": lease.version})]
    tx.wake(TOPIC)
    if new:
        tx.runs.insert(after, events)
        return after
    tx.runs.swap(row, after)
    for event in events:
        tx.runs.add_event(event)
    return after


def told(moved: Moved, data: Mapping[str, Any] | None = None) -> NewRunEvent:
    """A move as an event of the run's timeline."""
    return NewRunEvent(moved.run.id, moved.at, moved.type, moved.actor, moved.from_state, moved.to_state, data)


def said(row: Run, event: TriggerEvent | None) -> dict[str, Any]:
    """The trigger data of a run, in the form that its action reads from a file."""
    payload = dict((event.payload if event is not None else None) or {})
    trace = {tracing.HEADER: payload[tracing.HEADER]} if tracing.HEADER in payload else {}
    return trace | {
        "automation": row.automation,
        "run": row.id,
        "trigger": {"id": row.trigger, "kind": row.trigger_kind},
        "slot": None if event is None else event.slot,
        "fired_at": rfc3339(row.created_at),
        "events": payload.get("events", []),
        "payload": payload.get("payload"),
    }
