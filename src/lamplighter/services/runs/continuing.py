"""Runs that go on with the work of an earlier one: an answer to what it asked is the next turn of its conversation."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb, require
from lamplighter.domain.automations.model import AgentAction
from lamplighter.domain.runs.model import MESSAGE, Run, RunState, said
from lamplighter.domain.runs.model import continuing as continuing_run
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.records import changed, record
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.inbox import settling
from lamplighter.services.inbox.needs import PLAN
from lamplighter.services.runs import budgets
from lamplighter.services.runs.creating import add_run
from lamplighter.services.runs.spoken import speaks_to
from lamplighter.services.slack import following
from lamplighter.store.messages import Message
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

LONGEST_MESSAGE = 32_000
CONTINUED = "continued"
QUEUED = "message_queued"


class NotAsking(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} {said(run.state)}; only a run that asks can be answered.",
            hint=f"`lamp run show {run.id}` tells more.",
        )


class AwaitsApproval(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} asks nothing: its plan waits for approval.",
            hint=f"`lamp run approve {run.id}`, `lamp run amend {run.id} TEXT` or `lamp run reject {run.id}`.",
        )


class NoConversation(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id} is no agent's: nobody there can be told anything.")


class AlreadyAnswered(Conflict):
    def __init__(self, run: Run) -> None:
        super().__init__(
            f"Run {run.id} was answered before: run {run.continued_by} goes on with it.",
            hint=f"`lamp run watch {run.continued_by}` follows that.",
        )


def answer(tx: Tx, run: str, text: str, *, ctx: Context) -> Run:
    """Make the run that goes on with this one.

    Raises RunUnknown, NotAsking, AwaitsApproval, AlreadyAnswered, BudgetUsedUp, UsageError.
    """
    said = checked(text)
    asking = locked(tx, run)
    if asking.continued_by is not None:
        raise AlreadyAnswered(asking)
    if asking.state is not RunState.NEEDS_HUMAN or asking.action != AgentAction.kind:
        raise NotAsking(asking)
    if asking.reason == PLAN:
        raise AwaitsApproval(asking)
    budgets.must_be_left(tx, asking, ctx.rules, ctx.now)
    told = [Said(said, ctx.actor.name, ctx.now)]
    return continue_run(tx, asking, told, reason=f"answered by {ctx.actor.name}", ctx=ctx)


def locked(tx: Tx, run: str) -> Run:
    """The run, locked after its automation. Raises RunUnknown."""
    automation = tx.runs.automation_of(run)
    if automation is None:
        raise RunUnknown(run)
    tx.automations.lock(automation)  # before the run's own row: the usual lock order
    found = tx.runs.lock(run)
    if found is None:
        raise RunUnknown(run)
    return found


def send(tx: Tx, run: str, text: str, *, ctx: Context) -> tuple[Run, bool]:
    """Tell the conversation of a run something: the run that is told it, and whether it waits for that one's end.

    Raises RunUnknown, NoConversation, BudgetUsedUp, UsageError, and Forbidden for a run that an agent of the city was
    told by somebody who may not speak to agents.
    """
    said = checked(text)
    last = locked_last(tx, run)
    if last.action != AgentAction.kind:
        raise NoConversation(last)
    if speaks_to(last) is not None:
        require(ctx.actor, Verb.CONTROL_AGENTS)
    budgets.must_be_left(tx, last, ctx.rules, ctx.now)
    if last.ended:
        told = [Said(said, ctx.actor.name, ctx.now)]
        return continue_run(tx, last, told, reason=f"message of {ctx.actor.name}", ctx=ctx), False
    tx.messages.add(Message(ctx.ids.make("msg"), last.id, said, ctx.actor.name, ctx.now))
    data = {"text": said[:LONGEST_TOLD]}
    tx.runs.add_event(NewRunEvent(last.id, ctx.now, QUEUED, ctx.actor.name, last.state, last.state, data))
    return last, True


def next_turn(tx: Tx, ended: Run, *, ctx: Context) -> Run | None:
    """The run that goes on with one that has just ended, if messages waited for that."""
    waiting = tx.messages.waiting(ended.id)
    if not waiting:
        return None
    last = heir(tx, ended)
    if not last.ended:  # something else comes next: they are told to whatever comes after that
        tx.messages.pass_on(ended.id, last.id)
        return None
    told = [Said(one.text, one.sender, one.sent_at) for one in waiting]
    senders = ", ".join(dict.fromkeys(one.sender for one in waiting))
    made = continue_run(tx, last, told, reason=f"message of {senders}", ctx=ctx)
    tx.messages.take(ended.id, made.id)
    return made


def locked_last(tx: Tx, run: str) -> Run:
    """The last run of the conversation of `run`, locked."""
    while True:
        found = locked(tx, run)
        if found.continued_by is None or tx.runs.get(found.continued_by) is None:
            return found
        run = found.continued_by


def heir(tx: Tx, run: Run) -> Run:
    """The first run after this one that has not ended, or else the last of the conversation."""
    found = run
    while found.continued_by is not None:
        following = tx.runs.get(found.continued_by)
        if following is None:
            break
        found = following
        if not found.ended:
            break
    return found


def base_of(tx: Tx, last: Run) -> Run:
    """What a run that comes after `last` goes on with: `last`, or, if its turn had not come, what that waited for."""
    found: Run | None = last
    while found is not None and found.ended and found.session_id is None and found.continues is not None:
        found = tx.runs.get(found.continues)
        if found is not None and not found.ended:
            return found
    return last


def pass_turn(tx: Tx, ended: Run, *, ctx: Context) -> None:
    """Let what comes after a run that has just ended take its turn, or, if that had not come, wait on in its place."""
    following = heir(tx, ended)
    base = base_of(tx, ended)
    if base.id == ended.id:
        hand_over(tx, ended, following.id)
        tx.runs.start_clock(following.id, ctx.now)  # it waited for this
    elif not following.ended:
        tx.runs.go_on_with(following.id, base.id)


@record
class Said:
    text: str
    by: str
    at: datetime


def continue_run(  # noqa: PLR0913  what a run goes on with, and why
    tx: Tx,
    before: Run,
    told: Sequence[Said],
    *,
    reason: str,
    ctx: Context,
    how: str = "answered",
    approved: bool = False,
) -> Run:
    """Make the run that goes on with the locked run `before`, which has ended; its worktree goes over to it.

    `how` is told of its inbox item; `approved` says that the actor has approved its plan. Raises AlreadyAnswered.
    """
    new, event = ctx.ids.make("run"), ctx.ids.make("tev")
    if not tx.runs.continued(before.id, new):
        raise AlreadyAnswered(tx.runs.get(before.id) or before)
    if before.fingerprint:  # nobody is needed for it any more
        tx.runs.judge(before.id, "")
        settling.of_run(tx, before.fingerprint, how, ctx=ctx)
    text = "\n\n".join(one.text for one in told)
    by = ", ".join(dict.fromkeys(one.by for one in told))
    each = [{"text": one.text, "by": one.by, "at": rfc3339(one.at)} for one in told]
    payload = {"payload": {"message": {"text": text, "by": by, "run": before.id}, "messages": each}}
    tx.trigger_events.insert(_trigger_event(event, before, new, reason, payload, ctx))
    prefix = (before.bead or "gc-").rpartition("-")[0]
    inside = ctx.inside(None)
    base = base_of(tx, before).id
    after = continuing_run(before, new, event, ctx.now, approved=ctx.actor.name if approved else None)
    after = changed(after, continues=base)
    made = add_run(tx, after, prefix=prefix, ctx=inside, data={"continues": base, "reason": reason})
    hand_over(tx, before, new)
    data = {"by": new, "text": text[:LONGEST_TOLD]}
    tx.runs.add_event(NewRunEvent(before.id, ctx.now, CONTINUED, by, before.state, before.state, data))
    fact = {"run": before.id, "continued_by": new, "by": by}
    tx.events.append(ctx.event("run.continued", subject=before.automation, message=reason, payload=fact))
    following.goes_on(tx, before.id, new, ctx)
    return tx.runs.get(new) or made


def take_up(tx: Tx, before: Run, new: Run, *, reason: str, ctx: Context) -> None:
    """Record that `new` goes on with the locked run `before`; its worktree goes over at once, or when it ends.

    As long as `before` is at work, the new run waits, and its clock does not go.

    Raises AlreadyAnswered.
    """
    if not tx.runs.continued(before.id, new.id):
        raise AlreadyAnswered(tx.runs.get(before.id) or before)
    if before.ended:
        hand_over(tx, before, new.id)
        if before.fingerprint:  # nobody is needed for it any more
            tx.runs.judge(before.id, "")
            settling.of_run(tx, before.fingerprint, "answered", ctx=ctx)
    data = {"by": new.id, "reason": reason}
    tx.runs.add_event(NewRunEvent(before.id, ctx.now, CONTINUED, ctx.actor.name, before.state, before.state, data))
    fact = {"run": before.id, "continued_by": new.id, "by": ctx.actor.name}
    tx.events.append(ctx.event("run.continued", subject=before.automation, message=reason, payload=fact))
    following.goes_on(tx, before.id, new.id, ctx)


def hand_over(tx: Tx, before: Run, new: str) -> None:
    """The worktree of an ended run belongs to the one that goes on with it."""
    if before.worktree is not None:
        tx.runs.set_worktree(new, before.worktree)
        tx.runs.set_worktree(before.id, None)


LONGEST_TOLD = 2000


def checked(text: str) -> str:
    """Raises UsageError."""
    said = text.strip()
    if not said:
        raise UsageError("The message is empty.", hint="Say something.")
    if len(said) > LONGEST_MESSAGE:
        raise UsageError(
            f"The message has {len(said)} characters; at most {LONGEST_MESSAGE} are taken.",
            hint="Put the rest into a file that the agent can read.",
        )
    if "\0" in said or any("\ud800" <= sign <= "\udfff" for sign in said):
        raise UsageError("The message holds signs that cannot be kept as text.", hint="Send it as UTF-8 text.")
    return said


def _trigger_event(
    event: str, before: Run, run: str, reason: str, payload: dict[str, Any], ctx: Context
) -> TriggerEvent:
    return TriggerEvent(
        id=event, automation_id=before.automation_id, automation=before.automation, trigger=MESSAGE, kind=MESSAGE,
        status="fired", reason=reason, first_at=ctx.now, last_at=ctx.now, payload=payload, run=run,
    )  # fmt: skip
