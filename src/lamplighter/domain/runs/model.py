"""A run and the table of its legal moves; every change of a run's state is checked here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
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
    FINALIZER = "finalizer"
    DELIVERY = "delivery"


ACTIVE = frozenset({RunState.QUEUED, RunState.ENRICHING, RunState.READY, RunState.RUNNING})
TERMINAL = frozenset(RunState) - ACTIVE
ATTENTION = frozenset({RunState.FAILED, RunState.NEEDS_HUMAN, RunState.TIMED_OUT})

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
    (_RUN, RunState.NEEDS_HUMAN): frozenset({Mover.COMPLETION}),
    **{(state, RunState.SUCCEEDED): _RESOLVED for state in ATTENTION},
    **{(state, RunState.FAILED): _RESOLVED for state in ATTENTION},
}


@record
class Run:
    """One execution of an automation. `definition` is the automation's shape at the time it fired.

    `retries` is the id of the run that this one repeats: a retry is a new run. `causes` is the chain of automations
    that led to it.
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

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


@dataclass(frozen=True)
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


class IllegalMove(Conflict):
    def __init__(self, run: Run, to: RunState, by: By) -> None:
        super().__init__(f"Run {run.id} is {run.state}; {by.mover} cannot make it {to}.", hint=_hint(run, to))
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
        reason=f"manual_resolution:{reason or 'resolved'}" if resolving else reason,
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
    )


class NotEnded(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id} is still {run.state}.", hint=f"Cancel it first: `lamp run cancel {run.id}`.")


def _hint(run: Run, to: RunState) -> str:
    if run.state in {RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED}:
        return "It has ended for good; `lamp run retry` starts a new run."
    if run.ended:
        return "It has ended; `lamp run retry` starts a new run."
    if to in {RunState.SUCCEEDED, RunState.NEEDS_HUMAN}:
        return "Only a running run can be completed."
    return ""
