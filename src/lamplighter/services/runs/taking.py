"""Runs that a person takes over and gives back: meanwhile nobody here works on them, and their clock stands."""

from dataclasses import dataclass
from datetime import timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.runs.lease import fence, void
from lamplighter.domain.runs.model import Run, RunState, said
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, transaction
from lamplighter.services.runs import review
from lamplighter.services.runs.continuing import checked
from lamplighter.services.runs.queries import RUN_ID
from lamplighter.services.runs.views import RunView, view
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

TAKEN = "run_taken"
HANDED_OVER = "run_handed_over"
GIVEN = "run_given"


@dataclass(frozen=True)
class TakeRun:
    """Take over an agent's run: its program is ended, and yours to open; its clock stands until you give it back."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class GiveRun:
    """Give a run back that a person took: its agent goes on without one, in the same conversation and place."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")
    text: str = given("What it is told.", default="")


class NothingToTake(Conflict):
    def __init__(self, run: Run, why: str, *, hint: str = "") -> None:
        super().__init__(f"Run {run.id} cannot be taken: {why}.", hint=hint or f"`lamp run show {run.id}` tells more.")


class AlreadyTaken(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} is taken by {run.taken_by}.",
            hint=f"Ask them, or give it back first: `lamp run give {run.id}`.",
        )


class NotTaken(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} {said(run.state)}; nobody has taken it.", hint=f"`lamp run show {run.id}` tells more."
        )


class NotHandedOver(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"The program of run {run.id} is still being ended for {run.taken_by}.",
            hint="Try again in a moment; if no daemon is up, start one: `lamp up`.",
        )


def take(tx: Tx, run: str, *, ctx: Context) -> Run:
    """Mark the run as taken; its holder ends its program and lets go of it. The one who has it may repeat this.

    Raises RunUnknown, NothingToTake, AlreadyTaken.
    """
    row = review.locked(tx, run)
    if row.taken_by == ctx.actor.name:
        return row
    if row.taken_by is not None:
        raise AlreadyTaken(row)
    why = _not_now(row)
    if why:
        raise NothingToTake(row, why)
    after = changed(row, taken_by=ctx.actor.name, taken_at=ctx.now, last_activity_at=ctx.now)
    tx.runs.swap(row, after)
    _tell(tx, row, TAKEN, {"taken_by": ctx.actor.name}, ctx)
    payload = {"run": run, "by": ctx.actor.name}
    tx.events.append(ctx.event("run.taken", subject=row.automation, message="a person took it over", payload=payload))
    tx.wake(review.TAKEN)  # its holder looks at the runs it holds; one that nobody holds is taken up for it
    return after


def hand_over(tx: Tx, run: str, version: int, *, ctx: Context) -> Run:
    """Let go of a run that a person has taken, after its program has ended. One that has ended is left as it is.

    Raises RunUnknown, LeaseLost.
    """
    row = review.locked(tx, run)
    if row.ended:
        return row
    fence(row.lease, version)
    after = changed(row, lease=void(row.lease), session_id=None, prompt_sent_at=None)
    tx.runs.swap(row, after)
    _tell(tx, row, HANDED_OVER, {"taken_by": row.taken_by}, ctx)
    return after


def give(tx: Tx, run: str, text: str, *, ctx: Context) -> Run:
    """Let the run go on: its deadline is put off by the time it was taken. Raises RunUnknown, NotTaken, NotHandedOver,
    UsageError.
    """
    said = checked(text) if text.strip() else ""
    row = review.locked(tx, run)
    if row.taken_by is None or row.taken_at is None:
        raise NotTaken(row)
    if not handed_over(row):
        raise NotHandedOver(row)
    after = changed(give_back(tx, row, said, ctx=ctx), given={"text": said, "by": ctx.actor.name})
    tx.runs.swap(row, after)
    return after


def give_back(tx: Tx, row: Run, said: str = "", *, ctx: Context) -> Run:
    """The locked run with its clock going on, for the caller to write; one that nobody has taken as it is.

    Its deadline is put off by the time it was taken, and whoever may take it up is told.
    """
    if row.taken_at is None:
        return row
    stood = max(ctx.now - row.taken_at, timedelta(0))
    _tell(tx, row, GIVEN, {"by": ctx.actor.name, "text": said, "stood_s": int(stood.total_seconds())}, ctx)
    payload = {"run": row.id, "by": ctx.actor.name}
    tx.events.append(ctx.event("run.given", subject=row.automation, message="a person gave it back", payload=payload))
    tx.wake(review.TAKEN)
    return changed(
        row,
        taken_by=None,
        taken_at=None,
        stood=(row.stood or timedelta(0)) + stood,
        deadline_at=None if row.deadline_at is None else row.deadline_at + stood,
        last_activity_at=ctx.now,
    )


def handed_over(row: Run) -> bool:
    """Whether the program of a taken run has ended, so that the person may open it."""
    return row.taken_by is not None and row.session_id is None and row.lease.owner is None


def _not_now(row: Run) -> str:
    if row.action != AgentAction.kind:
        return "it is no agent's"
    if review.snapshots_of(row).speaks_to is not None:
        return f"it was told to the agent `{review.snapshots_of(row).speaks_to}`, whom `lamp agent attach` shows"
    if row.state is not RunState.RUNNING:
        return f"it {said(row.state)}, and only a running one can be"
    if row.pending is not None:
        return "the success that its agent claims is being verified"
    return "its program is only being started" if row.session_id is None else ""


def _tell(tx: Tx, run: Run, event: str, data: dict[str, object], ctx: Context) -> None:
    told = {key: value for key, value in data.items() if value}
    tx.runs.add_event(NewRunEvent(run.id, ctx.now, event, ctx.actor.name, run.state, run.state, told))


def take_run(tx: Tx, ask: TakeRun, ctx: Context) -> RunView:
    return view(take(tx, ask.run, ctx=ctx))


def give_run(tx: Tx, ask: GiveRun, ctx: Context) -> RunView:
    return view(give(tx, ask.run, ask.text, ctx=ctx))


TAKE_RUN = transaction(
    "run.take", Verb.ANSWER_RUN, TakeRun, RunView, take_run, http=Http("POST", "/runs/{run}/take"), repeatable=True
)
GIVE_RUN = transaction("run.give", Verb.ANSWER_RUN, GiveRun, RunView, give_run, http=Http("POST", "/runs/{run}/give"))
