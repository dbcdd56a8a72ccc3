"""Runs as surfaces show them: a page of runs, and one run as JSON; imports little, because it is used often."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.runs.model import RunState
from lamplighter.kit.clock import rfc3339
from lamplighter.store.run_rows import RunEvent, RunRow
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.artifacts import ArtifactRow


def page(
    tx: Tx, *, automation: str | None = None, state: RunState | None = None, before: str | None = None, limit: int = 50
) -> list[RunRow]:
    return tx.runs.page(automation=automation, state=state, before=before, limit=limit)


def as_json(
    row: RunRow, events: Sequence[RunEvent] | None = None, artifacts: "Sequence[ArtifactRow]" = ()
) -> dict[str, Any]:
    """A run as JSON for every surface; `events` adds its timeline."""
    run, facts = row.run, row.facts
    shape: dict[str, Any] = {
        "id": run.id,
        "automation": run.automation,
        "state": run.state.value,
        "reason": run.reason or None,
        "error": run.error or None,
        "action": facts.action,
        "rig": facts.rig,
        "trigger": {"id": facts.trigger, "kind": run.trigger_kind, "event_id": run.trigger_event},
        "attempt": run.attempt,
        "retry_of": run.retries,
        "causes": list(run.causes),
        "created_at": rfc3339(run.created_at),
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "deadline_at": _time(run.deadline_at),
        "duration_s": None if facts.duration is None else facts.duration.total_seconds(),
        "exit_code": run.exit_code,
        "output_tail": run.output_tail or None,
        "summary": run.summary or None,
        "session_id": run.session_id,
        "bead": facts.bead,
        "wisp": facts.wisp,
        "assigned_to": run.assigned_to,
        "cost": run.cost,
        "tokens": facts.tokens,
        "configuration": facts.configuration,
        "worktree": None if facts.worktree is None else dict(facts.worktree),
        "artifacts": [
            {"name": one.name, "key": one.key, "size": one.size, "written_at": rfc3339(one.written_at)}
            for one in artifacts
        ],
    }
    if events is not None:
        shape["events"] = [
            {"at": rfc3339(one.at), "type": one.type, "from": one.from_state, "to": one.to_state, "actor": one.actor,
             "data": one.data}
            for one in events
        ]  # fmt: skip
    return shape


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
