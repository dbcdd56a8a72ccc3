"""What people do with runs that need them: claim, unclaim and resolve; each with its event and actor."""

from lamplighter.domain.runs.model import RESOLVED, By, Mover, Run, RunState, move
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import changed, record
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.services.runs.continuing import AlreadyAnswered
from lamplighter.services.runs.ending import tell
from lamplighter.services.runs.review import locked
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx


def claim(tx: Tx, run: str, *, ctx: Context) -> Run:
    """Make the actor the one who looks after the run, whatever its state. Raises RunUnknown, AlreadyClaimed."""
    row = locked(tx, run)
    if row.assigned_to not in {None, ctx.actor.name}:
        raise AlreadyClaimed(row)
    after = changed(row, assigned_to=ctx.actor.name, assigned_at=ctx.now)
    tx.runs.swap(row, after)
    if row.assigned_to is None:
        _tell_person(tx, row, "assigned", {"assigned_to": ctx.actor.name}, ctx)
        tx.wake(needs.TOPIC)
    return after


def unclaim(tx: Tx, run: str, *, ctx: Context) -> Run:
    """Let go of the run, whoever claimed it; nothing happens if nobody did. Raises RunUnknown."""
    row = locked(tx, run)
    if row.assigned_to is None:
        return row
    after = changed(row, assigned_to=None, assigned_at=None)
    tx.runs.swap(row, after)
    _tell_person(tx, row, "unassigned", {"assigned_to": row.assigned_to}, ctx)
    tx.wake(needs.TOPIC)
    return after


@record
class Resolution:
    """How a person settles a run that needs one: `succeeded` or `failed`, a short reason, and a comment."""

    outcome: RunState
    reason: str = ""
    comment: str = ""


def resolve(tx: Tx, run: str, said: Resolution, *, ctx: Context, how: str = "resolved") -> Run:
    """Settle a run that ended as failed, needs_human or timed_out. Its trigger event stays as it is.

    Raises RunUnknown, IllegalMove for a run in another state, AlreadyAnswered, and AlreadyResolved.
    """
    row = locked(tx, run)
    if row.continued_by is not None:
        raise AlreadyAnswered(row)
    if row.reason.startswith(RESOLVED):
        raise AlreadyResolved(row)
    moved = move(row, said.outcome, By(Mover.PERSON, ctx.actor.name), ctx.now, reason=said.reason)
    after = changed(moved.run, fingerprint="")
    tx.runs.swap(row, after)
    data = {"user": ctx.actor.name, "previous_state": row.state.value, "reason": said.reason, "comment": said.comment}
    tell(tx, moved, {key: value for key, value in data.items() if value})
    payload = {"run": run, "state": after.state.value, "previous_state": row.state.value, "reason": said.reason or None}
    tx.events.append(ctx.event("run.resolved", subject=row.automation, payload=payload))
    if row.fingerprint:
        settling.of_run(tx, row.fingerprint, how, ctx=ctx)
    return after


def _tell_person(tx: Tx, run: Run, event: str, data: dict[str, str], ctx: Context) -> None:
    tx.runs.add_event(NewRunEvent(run.id, ctx.now, event, ctx.actor.name, data=data))


class AlreadyClaimed(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} is claimed by {run.assigned_to}.",
            hint=f"Ask them, or let go of it first: `lamp run unclaim {run.id}`.",
        )


class AlreadyResolved(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} was resolved as {run.state} already.", hint=f"`lamp run show {run.id}` says by whom."
        )
