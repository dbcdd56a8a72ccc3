"""Workers of runs, and how a worker claims a free run and makes it running."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.automations.model import ActionKind
from lamplighter.domain.delivery.outbox import ItemKind
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.lease import claim
from lamplighter.domain.runs.model import By, Moved, Mover, RunState, move
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import changed
from lamplighter.store.run_rows import NewRunEvent, RunRow
from lamplighter.store.trigger_events import TriggerEvent


@dataclass(frozen=True)
class Worker:
    """A worker: the owner whose proof of life backs its leases, its node, and its name as an actor."""

    owner: str
    node: str
    actor: str = "worker"


@dataclass(frozen=True)
class Started:
    row: RunRow
    trigger: dict[str, Any]
    """The trigger data, in the form that the run's action reads from a file."""


@dataclass(frozen=True)
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


def made_running(row: RunRow, worker: Worker, now: datetime) -> tuple[RunRow, Moved]:
    """The run with its lease claimed and its state moved to running. Raises LeaseHeld, IllegalMove."""
    lease = claim(row.run.lease, worker.owner, now)
    moved = move(changed(row.run, lease=lease), RunState.RUNNING, By(Mover.WORKER, worker.actor, lease.version), now)
    return RunRow(moved.run, changed(row.facts, node=worker.node)), moved


def told(moved: Moved, data: Mapping[str, Any] | None = None) -> NewRunEvent:
    """A move as an event of the run's timeline."""
    return NewRunEvent(moved.run.id, moved.at, moved.type, moved.actor, moved.from_state, moved.to_state, data)


def told_of_start(moved: Moved) -> NewRunEvent:
    return told(moved, {"owner": moved.run.lease.owner, "lease": moved.run.lease.version})


def said(row: RunRow, event: TriggerEvent | None) -> dict[str, Any]:
    """The trigger data of a run, in the form that its action reads from a file."""
    payload = dict((event.payload if event is not None else None) or {})
    return {
        "automation": row.run.automation,
        "run": row.run.id,
        "trigger": {"id": row.facts.trigger, "kind": row.run.trigger_kind},
        "slot": None if event is None else event.slot,
        "fired_at": rfc3339(row.run.created_at),
        "events": payload.get("events", []),
        "payload": payload.get("payload"),
    }
