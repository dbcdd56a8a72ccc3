"""Runs as rows: which columns are written when, and the entries of their timelines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.records import record
from lamplighter.store.engine import Row, instant, stamp
from lamplighter.store.tables import Table


@dataclass(frozen=True, slots=True)
class Papers:
    """What a run took from its trigger (`enrichment`) and what its agent reported (`completion`), as JSON text."""

    enrichment: str | None
    completion: str | None


@dataclass(frozen=True, slots=True)
class RunEvent:
    number: int
    at: datetime
    type: str
    from_state: str | None
    to_state: str | None
    actor: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of an automation, in short."""

    id: str
    automation: str
    state: RunState
    reason: str
    started_at: datetime | None
    ended_at: datetime | None


@record
class NewRunEvent:
    run: str
    at: datetime
    type: str
    actor: str
    from_state: RunState | None = None
    to_state: RunState | None = None
    data: Mapping[str, Any] | None = None


RUNS = Table(
    Run,
    renamed={
        "trigger": "trigger_id",
        "trigger_event": "trigger_event_id",
        "retries": "retry_of",
        "bead": "bead_id",
        "wisp": "wisp_id",
        "duration": "duration_us",
        "stood": "stood_us",
    },
)
FIXED = (
    "id", "automation_id", "automation", "rig", "action", "trigger_id", "trigger_kind", "trigger_event_id",
    "definition", "attempt", "retry_of", "causes", "bead_id", "created_at", "continues", "approved",
)  # fmt: skip
"""The columns that no move of a run changes."""
MOVING = tuple(name for name in RUNS.names if name not in FIXED)
MADE = (
    *FIXED, "state", "lease_version", "lease_owner", "lease_expires_at", "node", "started_at", "deadline_at",
    "last_activity_at",
)  # fmt: skip
"""The columns that are known when a run is created; the others start with the defaults of the schema."""
ENDED = (
    "state", "reason", "stage", "error", "ended_at", "last_activity_at", "exit_code", "duration_us", "output_tail",
    "summary", "completion_id", "grade", "pending", "lifts_at", "question", "taken_by", "taken_at", "stood_us",
    "fingerprint",
)  # fmt: skip
"""The columns that the end of a run changes."""
made = RUNS.writer(*MADE)
moving = RUNS.writer("id", *MOVING)
ended = RUNS.writer("id", *ENDED)


def told(event: NewRunEvent) -> dict[str, object]:
    return {
        "run": event.run,
        "at": stamp(event.at),
        "type": event.type,
        "from_state": None if event.from_state is None else event.from_state.value,
        "to_state": None if event.to_state is None else event.to_state.value,
        "actor": event.actor,
        "data": None if event.data is None else dict(event.data),
    }


def written(worktree: Mapping[str, str] | None) -> str | None:
    return None if worktree is None else json.dumps(dict(worktree))


def run_event(number: int, row: Row) -> RunEvent:
    return RunEvent(
        number=number,
        at=instant(row["at"]),
        type=row["type"],
        from_state=row["from_state"],
        to_state=row["to_state"],
        actor=row["actor"],
        data=None if row["data"] is None else json.loads(row["data"]),
    )
