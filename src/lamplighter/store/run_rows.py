"""Runs as rows: what a row holds besides the run itself, and the conversion between columns and values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.runs.lease import Lease
from lamplighter.domain.runs.model import Run, RunState, Stage
from lamplighter.kit.json_text import read, text_of
from lamplighter.kit.records import record
from lamplighter.store.engine.db import Row, instant, instant_or_none, stamp, stamp_or_none


@record
class RunFacts:
    """What a row holds besides the run itself."""

    automation_id: str
    action: str
    trigger: str
    rig: str | None = None
    bead: str | None = None
    node: str | None = None
    """The node its process runs on; only a process of that node can adopt the run."""
    wisp: str | None = None
    wisp_elsewhere: bool = False
    """The wisp lives in an outside bead store."""
    duration: timedelta | None = None
    configuration: str | None = None
    prompt_sent_at: datetime | None = None
    tokens: int | None = None
    worktree: Mapping[str, str] | None = None
    """`path`, `branch` and `repository` of the worktree it works or worked in, as long as that exists."""


@dataclass(frozen=True, slots=True)
class Papers:
    """What a run took from its trigger (`enrichment`) and what its agent reported (`completion`), as JSON text."""

    enrichment: str | None
    completion: str | None


@dataclass(frozen=True, slots=True)
class RunRow:
    run: Run
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class RunEvent:
    number: int
    at: datetime
    type: str
    from_state: str | None
    to_state: str | None
    actor: str
    data: Any = None


@record
class NewRunEvent:
    run: str
    at: datetime
    type: str
    actor: str
    from_state: RunState | None = None
    to_state: RunState | None = None
    data: Mapping[str, Any] | None = None


def made(row: RunRow) -> dict[str, object]:
    """The columns that are known when a run is created."""
    run, facts = row.run, row.facts
    return {
        "id": run.id,
        "automation_id": facts.automation_id,
        "automation": run.automation,
        "rig": facts.rig,
        "action": facts.action,
        "trigger_id": facts.trigger,
        "trigger_kind": run.trigger_kind,
        "trigger_event_id": run.trigger_event,
        "definition": text_of(run.definition),
        "attempt": run.attempt,
        "retry_of": run.retries,
        "causes": json.dumps(list(run.causes)) if run.causes else "[]",
        "bead_id": facts.bead,
        "created_at": stamp(run.created_at),
        "state": run.state.value,
        "lease_version": run.lease.version,
        "lease_owner": run.lease.owner,
        "lease_expires_at": stamp_or_none(run.lease.expires_at),
        "node": facts.node,
        "started_at": stamp_or_none(run.started_at),
        "deadline_at": stamp_or_none(run.deadline_at),
        "last_activity_at": stamp_or_none(run.last_activity_at),
    }


def moving(row: RunRow) -> dict[str, object]:
    """The columns of a run that may change."""
    run, facts = row.run, row.facts
    return {
        "id": run.id,
        "state": run.state.value,
        "reason": run.reason,
        "stage": None if run.stage is None else run.stage.value,
        "error": run.error,
        "lease_version": run.lease.version,
        "lease_owner": run.lease.owner,
        "lease_expires_at": stamp_or_none(run.lease.expires_at),
        "node": facts.node,
        "wisp_id": facts.wisp,
        "wisp_elsewhere": int(facts.wisp_elsewhere),
        "started_at": stamp_or_none(run.started_at),
        "ended_at": stamp_or_none(run.ended_at),
        "deadline_at": stamp_or_none(run.deadline_at),
        "last_activity_at": stamp_or_none(run.last_activity_at),
        "exit_code": run.exit_code,
        "duration_us": _micros(facts.duration),
        "output_tail": run.output_tail,
        "summary": run.summary,
        "session_id": run.session_id,
        "completion_id": run.completion_id,
        "assigned_to": run.assigned_to,
        "assigned_at": stamp_or_none(run.assigned_at),
        "cost": run.cost,
        "configuration": facts.configuration,
        "prompt_sent_at": stamp_or_none(facts.prompt_sent_at),
        "tokens": facts.tokens,
        "worktree": written(facts.worktree),
    }


def ended(row: RunRow) -> dict[str, object]:
    """The columns that the end of a run changes."""
    run, facts = row.run, row.facts
    return {
        "id": run.id,
        "state": run.state.value,
        "reason": run.reason,
        "stage": None if run.stage is None else run.stage.value,
        "error": run.error,
        "ended_at": stamp_or_none(run.ended_at),
        "last_activity_at": stamp_or_none(run.last_activity_at),
        "exit_code": run.exit_code,
        "duration_us": _micros(facts.duration),
        "output_tail": run.output_tail,
        "summary": run.summary,
        "completion_id": run.completion_id,
    }


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


def _micros(span: timedelta | None) -> int | None:
    return None if span is None else span // timedelta(microseconds=1)


def written(worktree: Mapping[str, str] | None) -> str | None:
    return None if worktree is None else json.dumps(dict(worktree))


def run_row(row: Row) -> RunRow:
    run = Run(
        id=row["id"],
        automation=row["automation"],
        state=RunState(row["state"]),
        created_at=instant(row["created_at"]),
        trigger_kind=row["trigger_kind"],
        trigger_event=row["trigger_event_id"],
        definition=read(row["definition"]),
        reason=row["reason"],
        stage=None if row["stage"] is None else Stage(row["stage"]),
        error=row["error"],
        lease=Lease(row["lease_version"], row["lease_owner"], instant_or_none(row["lease_expires_at"])),
        attempt=row["attempt"],
        retries=row["retry_of"],
        causes=tuple(json.loads(row["causes"])),
        started_at=instant_or_none(row["started_at"]),
        ended_at=instant_or_none(row["ended_at"]),
        deadline_at=instant_or_none(row["deadline_at"]),
        last_activity_at=instant_or_none(row["last_activity_at"]),
        exit_code=row["exit_code"],
        output_tail=row["output_tail"],
        summary=row["summary"],
        session_id=row["session_id"],
        completion_id=row["completion_id"],
        assigned_to=row["assigned_to"],
        assigned_at=instant_or_none(row["assigned_at"]),
        cost=row["cost"],
    )
    duration = row["duration_us"]
    facts = RunFacts(
        automation_id=row["automation_id"],
        action=row["action"],
        trigger=row["trigger_id"],
        rig=row["rig"],
        bead=row["bead_id"],
        node=row["node"],
        wisp=row["wisp_id"],
        wisp_elsewhere=bool(row["wisp_elsewhere"]),
        duration=None if duration is None else timedelta(microseconds=duration),
        configuration=row["configuration"],
        prompt_sent_at=instant_or_none(row["prompt_sent_at"]),
        tokens=row["tokens"],
        worktree=None if row["worktree"] is None else json.loads(row["worktree"]),
    )
    return RunRow(run, facts)


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
