"""A run and the table of its legal moves; every change of a run's state is checked here and nowhere else."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lamplighter.domain.runs.lease import Lease, fence, void
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import changed, record


class RunState(StrEnum):
    QUEUED = "queued"
    ENRICHING = "enriching"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class Mover(StrEnum):
    """The role in which an actor moves a run; the actor's name is recorded separately."""

    WORKER = "worker"
    COMPLETION = "completion"
    FINALIZER = "finalizer"
    OUTBOX = "outbox"
    POLICY = "policy"
    PERSON = "person"


class Stage(StrEnum):
    ENRICHMENT = "enrichment"
    EXECUTION = "execution"
    SETUP = "setup"
    VERIFICATION = "verification"
    FINALIZER = "finalizer"
    DELIVERY = "delivery"


class Grade(StrEnum):
    """How it is known that a run succeeded."""

    VERIFIED = "verified"
    """Its automation's `verify` command said so."""
    CLAIMED = "claimed"
    """Its agent said so, and nothing was named to verify it."""


MESSAGE = "message"
"""The kind of trigger of a run that a message to an earlier one set off."""
ACTIVE = frozenset({RunState.QUEUED, RunState.ENRICHING, RunState.READY, RunState.RUNNING})
TERMINAL = frozenset(RunState) - ACTIVE
ATTENTION = frozenset({RunState.FAILED, RunState.NEEDS_HUMAN, RunState.TIMED_OUT})
RESOLVED = "manual_resolution:"
"""How the reason of a run begins that a person resolved."""

_Q, _E, _R, _RUN = RunState.QUEUED, RunState.ENRICHING, RunState.READY, RunState.RUNNING
_WORKER = frozenset({Mover.WORKER})
_GIVEN_UP = frozenset({Mover.WORKER, Mover.OUTBOX, Mover.FINALIZER})
_OVERDUE = frozenset({Mover.FINALIZER})
_CALLED_OFF = frozenset({Mover.PERSON, Mover.POLICY})
_NOT_NEEDED = frozenset({Mover.WORKER, Mover.POLICY})
_ENDED = frozenset({Mover.COMPLETION, Mover.WORKER})
_RESOLVED = frozenset({Mover.PERSON})

MOVES: Mapping[tuple[RunState, RunState], frozenset[Mover]] = {
    (_Q, _E): _WORKER,
    (_E, _R): _WORKER,
    (_R, _RUN): _WORKER,
    **{(state, RunState.FAILED): _GIVEN_UP for state in (_Q, _E, _R)},
    **{(state, RunState.TIMED_OUT): _OVERDUE for state in (_Q, _E, _R, _RUN)},
    **{(state, RunState.CANCELED): _CALLED_OFF for state in (_Q, _E, _R, _RUN)},
    **{(state, RunState.SKIPPED): _NOT_NEEDED for state in (_Q, _E, _R, _RUN)},
    (_RUN, RunState.SUCCEEDED): _ENDED,
    (_RUN, RunState.FAILED): _ENDED | _GIVEN_UP,
    (_RUN, RunState.NEEDS_HUMAN): frozenset({Mover.COMPLETION, Mover.FINALIZER}),
    **{(state, RunState.SUCCEEDED): _RESOLVED for state in ATTENTION},
    **{(state, RunState.FAILED): _RESOLVED for state in ATTENTION},
}


@record
class Run:
    """One execution of an automation. `definition` is the automation's shape at the time it fired.

    `automation` is the automation's scoped name, `action` the kind of its action, `trigger` the id of the trigger that
    fired it, and `bead` the run's tracking bead. `retries` is the id of the run that this one repeats: a retry is a new
    run. `causes` is the chain of automations that led to it.
    """

    id: str
    automation: str
    state: RunState
    created_at: datetime
    trigger_kind: str = "manual"
    trigger_event: str | None = None
    definition: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    stage: Stage | None = None
    error: str = ""
    lease: Lease = field(default_factory=Lease)
    attempt: int = 0
    retries: str | None = None
    causes: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    deadline_at: datetime | None = None
    last_activity_at: datetime | None = None
    exit_code: int | None = None
    output_tail: str = ""
    summary: str = ""
    session_id: str | None = None
    completion_id: str | None = None
    assigned_to: str | None = None
    assigned_at: datetime | None = None
    cost: float | None = None
    automation_id: str = ""
    action: str = "exec"
    trigger: str = "manual"
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
    in_force: Mapping[str, str] | None = None
    """What an agent run was started with: preset, version, model, effort, mode, the prompt's digest, its login."""
    lifts_at: datetime | None = None
    """When the limit of its provider is lifted, for a run that failed by it; until when a `ready` run is held."""
    worktree: Mapping[str, str] | None = None
    """`path`, `branch` and `repository` of the worktree it works or worked in, as long as that exists."""
    grade: Grade | None = None
    """Set when an agent's run, or one with a `verify` command, has succeeded."""
    round: int = 1
    """Counts how often its program was set to work: one more each time a claim of success was not verified."""
    pending: str | None = None
    """The id of the completion whose claim of success is being verified."""
    question: Mapping[str, Any] | None = None
    """What it asks a person: `text`, `choices` and `without_answer`."""
    continues: str | None = None
    """The run whose work it goes on with: its conversation, in its place."""
    continued_by: str | None = None
    ports: str | None = None
    """The block of ports it was given: the first and how many, as `20000+10`."""
    approved: str | None = None
    """Who approved the plan that it carries out."""
    taken_by: str | None = None
    """The person who has taken it over: nobody here works on it, and its clock stands."""
    taken_at: datetime | None = None
    stood: timedelta | None = None
    """How long its clock stood in all, before it was given back last."""
    given: Mapping[str, Any] | None = None
    """What its program is told because a person gave it back: `text` and `by`."""
    fingerprint: str | None = None
    """What it needs a person for, the same for runs that ended in the same way; empty if for nothing, None as long as
    nobody has looked."""

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


@record
class By:
    """The actor that moves a run, and its role; only a worker needs the version of the lease it holds."""

    mover: Mover
    actor: str
    lease_version: int | None = None


@record
class Moved:
    """The run after the move, and what its timeline records."""

    run: Run
    from_state: RunState
    to_state: RunState
    actor: str
    at: datetime
    type: str


_SAID = {
    RunState.SUCCEEDED: "has succeeded",
    RunState.FAILED: "has failed",
    RunState.TIMED_OUT: "has timed out",
    RunState.NEEDS_HUMAN: "needs a person",
    RunState.CANCELED: "was canceled",
    RunState.SKIPPED: "was skipped",
    RunState.ENRICHING: "is being prepared",
}


def said(state: RunState) -> str:
    """The state in a sentence about the run: `has succeeded`, `was canceled`, `is running`."""
    return _SAID.get(state, f"is {state}")


class IllegalMove(Conflict):
    def __init__(self, run: Run, to: RunState, by: By) -> None:
        whose = "" if by.mover is Mover.PERSON else f" by {by.mover}"
        told = f"Run {run.id} {said(run.state)} and cannot become {to.replace('_', ' ')}{whose}."
        super().__init__(told, hint=_hint(run, to))
        self.run, self.to, self.by = run, to, by


def may_move(state: RunState, to: RunState, mover: Mover) -> bool:
    return mover in MOVES.get((state, to), frozenset())


def move(run: Run, to: RunState, by: By, now: datetime, *, reason: str = "", stage: Stage | None = None) -> Moved:
    """Move a run. Raises IllegalMove, or LeaseLost for a worker that no longer holds the lease.

    Moving to `ready` or to an end state voids the lease. A resolution does not change the time the run ended.
    """
    if not may_move(run.state, to, by.mover):
        raise IllegalMove(run, to, by)
    if by.mover is Mover.WORKER:
        fence(run.lease, -1 if by.lease_version is None else by.lease_version)
    resolving = run.ended
    after = changed(
        run,
        state=to,
        reason=f"{RESOLVED}{reason or 'resolved'}" if resolving else reason,
        stage=run.stage if resolving else stage,
        lease=void(run.lease) if to is RunState.READY or to in TERMINAL else run.lease,
        started_at=run.started_at or (now if to is RunState.RUNNING else None),
        ended_at=run.ended_at or (now if to in TERMINAL else None),
        last_activity_at=now,
    )
    kind = "manual_resolution" if resolving else "completion" if by.mover is Mover.COMPLETION else "status_transition"
    return Moved(after, run.state, to, by.actor, now, kind)


def first_state(*, enriched: bool) -> RunState:
    """`queued` for runs that are enriched; runs with nothing to enrich (exec, formula) start `ready`."""
    return RunState.QUEUED if enriched else RunState.READY


def retry_of(run: Run, new_id: str, now: datetime, *, enriched: bool) -> Run:
    """A new run of the same definition, linked to the old one, with the same time from creation to deadline.

    Raises NotEnded while the old run is under way.
    """
    if not run.ended:
        raise NotEnded(run)
    return Run(
        id=new_id,
        automation=run.automation,
        state=first_state(enriched=enriched),
        created_at=now,
        trigger_kind=run.trigger_kind,
        trigger_event=run.trigger_event,
        definition=run.definition,
        attempt=run.attempt + 1,
        retries=run.id,
        causes=run.causes,
        deadline_at=None if run.deadline_at is None else now + (run.deadline_at - run.created_at),
        automation_id=run.automation_id,
        action=run.action,
        trigger=run.trigger,
        rig=run.rig,
        continues=run.continues,
        approved=run.approved,
    )


def continuing(run: Run, new_id: str, trigger_event: str, now: datetime, *, approved: str | None = None) -> Run:
    """A new run that goes on with the work of this one, in its place: a turn of the same conversation.

    `approved` names who approved the plan of this one, if that is why it goes on. Raises NotEnded while this one is
    under way.
    """
    if not run.ended:
        raise NotEnded(run)
    return Run(
        id=new_id,
        automation=run.automation,
        state=first_state(enriched=True),
        created_at=now,
        trigger_kind=MESSAGE,
        trigger_event=trigger_event,
        definition=run.definition,
        causes=run.causes,
        deadline_at=None if run.deadline_at is None else now + (run.deadline_at - run.created_at),
        last_activity_at=now,
        automation_id=run.automation_id,
        action=run.action,
        trigger=MESSAGE,
        rig=run.rig,
        continues=run.id,
        approved=approved or run.approved,
    )


class NotEnded(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} {said(run.state).replace('is ', 'is still ', 1)}.",
            hint=f"Cancel it first: `lamp run cancel {run.id}`.",
        )


def _hint(run: Run, to: RunState) -> str:
    if run.state in {RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED}:
        return "It has ended for good; `lamp run retry` starts a new run."
    if run.ended:
        return "It has ended; `lamp run retry` starts a new run."
    if to in {RunState.SUCCEEDED, RunState.NEEDS_HUMAN}:
        return "Only a running run can be completed."
    return ""
