"""Runs as every surface shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.runs.model import Grade, Run, RunState
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.store.run_rows import RunEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.store.artifacts import ArtifactRow

GIVEN_UP = "item_given_up"
"""The run event of an outbox item that will not be tried again."""


@record
class TriggerView:
    id: str
    kind: str
    event_id: str | None


@record
class ArtifactView:
    name: str
    key: str
    size: int
    written_at: datetime


@record
class RunEventView:
    at: datetime
    type: str
    from_state: str | None = given("The state before.", key="from")
    to_state: str | None = given("The state after.", key="to")
    actor: str = given("Who did it.")
    data: Any = given("More facts.")


@record
class InForceView:
    """What an agent run was started with; null is what nobody chose, or what the program does not tell."""

    preset: str | None
    version: str | None
    model: str | None
    effort: str | None
    mode: str | None
    prompt_digest: str | None
    login: str | None
    fallback: bool


@record
class QuestionView:
    """What a run asks a person; `choices` are proposals, and any answer may be given."""

    text: str
    choices: Sequence[str]
    without_answer: str | None


@record
class RunView:
    id: str
    automation: str
    state: RunState
    reason: str | None
    grade: Grade | None
    round: int
    verifying: bool
    question: QuestionView | None
    continues: str | None
    continued_by: str | None
    approved_by: str | None
    taken_by: str | None
    taken_at: datetime | None
    error: str | None
    waits_for: str | None
    action: str
    rig: str | None
    trigger: TriggerView
    attempt: int
    retry_of: str | None
    causes: Sequence[str]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    deadline_at: datetime | None
    duration_s: timedelta | None
    exit_code: int | None
    output_tail: str | None
    summary: str | None
    session_id: str | None
    bead: str | None
    wisp: str | None
    assigned_to: str | None
    cost: float | None
    tokens: int | None
    configuration: str | None
    in_force: InForceView | None
    lifts_at: datetime | None
    worktree: Mapping[str, str] | None
    artifacts: Sequence[ArtifactView]


@record
class NotedRun(RunView):
    """A run that somebody's request made."""

    note: str | None = given("What to know about how the request was taken; null if nothing.", default=None)


@record
class RunDetail(RunView):
    """A run with its timeline; `artifacts_lost` are those that could not be written and were given up."""

    events: Sequence[RunEventView]
    node: str | None = given("The node on which it runs or ran.", default=None)
    attempts: int = given("How many tries its policy allows, the first included.", default=1)
    retried_by: str | None = given("The run that tries it again.", default=None)
    artifacts_lost: Sequence[str] = given("Artifacts that could not be written and were given up.", default=())


def view(row: Run, artifacts: "Sequence[ArtifactRow]" = ()) -> RunView:
    return RunView(**_parts(row, artifacts))


def noted(row: Run, note: str | None) -> NotedRun:
    return NotedRun(**_parts(row, ()), note=note)


def detail(
    row: Run, events: Sequence[RunEvent], artifacts: "Sequence[ArtifactRow]", *, retried_by: str | None = None
) -> RunDetail:
    found = [RunEventView(one.at, one.type, one.from_state, one.to_state, one.actor, one.data) for one in events]
    attempts = 1 + int(((row.definition.get("policies") or {}).get("retry") or {}).get("count") or 0)
    parts = _parts(row, artifacts) | {"node": row.node, "attempts": attempts, "retried_by": retried_by}
    return RunDetail(**parts, events=found, artifacts_lost=_lost(events, artifacts))


def changes_of(events: Sequence[RunEventView]) -> str | None:
    """What a run changed, and what a person made of that: `1 new file, applied to /src/shop`."""
    told: str | None = None
    for event in events:
        match event.type:
            case "worktree_kept":
                told = event.data["diff"]
            case "worktree_applied":
                told = f"{told or 'some'}, applied to {event.data['repository']}"
            case "worktree_discarded":
                told = f"{told or 'some'}, discarded"
    return told


def _lost(events: Sequence[RunEvent], artifacts: "Sequence[ArtifactRow]") -> list[str]:
    kept = {one.name for one in artifacts}
    told = {one.data["artifact"] for one in events if one.type == GIVEN_UP and one.data and one.data.get("artifact")}
    return sorted(told - kept)


def _in_force(told: Mapping[str, str] | None) -> InForceView | None:
    if told is None or "preset" not in told:
        return None
    return InForceView(
        preset=told["preset"],
        version=told.get("version"),
        model=told.get("model"),
        effort=told.get("effort"),
        mode=told.get("mode"),
        prompt_digest=told.get("prompt_digest"),
        login=told.get("login_home"),
        fallback=told.get("fallback") == "taken",
    )


def waits_for(run: Run) -> str | None:
    """What a run that is ready has to wait for; None for any other."""
    return (run.error or run.reason) if run.state is RunState.READY and run.reason else None


def _parts(run: Run, artifacts: "Sequence[ArtifactRow]") -> dict[str, Any]:
    return {
        "id": run.id,
        "automation": run.automation,
        "state": run.state,
        "reason": run.reason or None,
        "grade": run.grade,
        "round": run.round,
        "verifying": run.pending is not None,
        "question": None if run.question is None else QuestionView(**run.question),
        "continues": run.continues,
        "continued_by": run.continued_by,
        "approved_by": run.approved,
        "taken_by": run.taken_by,
        "taken_at": run.taken_at,
        "error": run.error or None,
        "waits_for": waits_for(run),
        "action": run.action,
        "rig": run.rig,
        "trigger": TriggerView(run.trigger, run.trigger_kind, run.trigger_event),
        "attempt": run.attempt,
        "retry_of": run.retries,
        "causes": run.causes,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "deadline_at": run.deadline_at,
        "duration_s": run.duration,
        "exit_code": run.exit_code,
        "output_tail": run.output_tail or None,
        "summary": run.summary or None,
        "session_id": run.session_id,
        "bead": run.bead,
        "wisp": run.wisp,
        "assigned_to": run.assigned_to,
        "cost": run.cost,
        "tokens": run.tokens,
        "configuration": run.configuration,
        "in_force": _in_force(run.in_force),
        "lifts_at": run.lifts_at,
        "worktree": run.worktree,
        "artifacts": [ArtifactView(one.name, one.key, one.size, one.written_at) for one in artifacts],
    }
