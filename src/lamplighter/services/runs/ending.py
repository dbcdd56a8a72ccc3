"""The end of a run with everything that follows from it, in one transaction, for one run or a batch of runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.automations.decisions import Outcome, SkipReason, start_again, streak
from lamplighter.domain.automations.decisions import retry as retry_decision
from lamplighter.domain.automations.model import AgentAction, Automation, TriggerKind
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.inbox.fingerprint import last_line
from lamplighter.domain.runs.model import (
    MESSAGE,
    By,
    Grade,
    IllegalMove,
    Moved,
    Mover,
    Run,
    RunState,
    Stage,
    move,
    retry_of,
)
from lamplighter.domain.sessions.logins import Login
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import LampError
from lamplighter.kit.json_text import text_of
from lamplighter.kit.records import changed, record
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import logins
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.registering import TOPIC as AUTOMATIONS
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.services.runs.continuing import base_of, hand_over, next_turn, pass_turn
from lamplighter.services.runs.creating import add_run
from lamplighter.services.runs.workers import told
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine import Refused, batched, one
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

TAKEN = "runs.taken"
"""Topic: runs were freed by someone other than their holder: holders look at their own, others take them up."""
TOLD = "runs.told"
"""Topic: runs were ended, or claimed to be done, by someone other than their holder: each process looks at its own."""
LONGEST_ERROR = 2000
MESSAGE_BYTES = 300
FALLBACK_NAMED, FALLBACK_TAKEN = "named", "taken"
"""Whether another preset or model is named for a run whose provider's limit is reached, and whether it was taken."""
_NOT_COUNTED = frozenset({SkipReason.LOGIN, SkipReason.PROVIDER_LIMIT, SkipReason.BUDGET})
"""Reasons that say nothing about the automation: nothing is counted for them."""


@record
class Ending:
    """How a run ends, and the results that are kept."""

    state: RunState
    reason: str = ""
    stage: Stage | None = None
    error: str = ""
    exit_code: int | None = None
    output_tail: str = ""
    duration: timedelta | None = None
    summary: str = ""
    completion_id: str | None = None
    grade: Grade | None = None
    login: Login | None = None
    """The login that did not work or is limited, where that ended the run."""
    question: Mapping[str, Any] | None = None
    nothing_ran: bool = False
    """It could not be started, and is tried again for that a few times."""


LAST_WORDS = timedelta(seconds=10)
"""How long a program may go on after it completed its run, to write its last output and its usage."""


@dataclass
class _Ending:
    """The rows of one transaction that ends runs, updated by each end. For `end_many_held` run rows are not locked."""

    tx: Tx
    automations: dict[str, AutomationRow]
    rows: dict[str, Run]

    def end(self, run: str, ask: "EndRun | EndHeld") -> Run | Refused:
        before, ending, by, ctx = self.rows.get(run), ask.ending, ask.by, ask.ctx
        if before is None:
            return Refused(RunUnknown(run))
        try:
            moved = move(before, ending.state, by, ctx.now, reason=ending.reason, stage=ending.stage)
        except LampError as error:
            return Refused(error)
        after = _ended(moved, ending)
        automation = self.automations.get(after.automation_id)
        later = retry_at(after, automation, ctx.now, nothing_ran=ending.nothing_ran)
        after = self.rows[run] = changed(after, fingerprint=needs.judgement(after, tried_again=later is not None))
        ended = _write(self.tx, moved, ending, before, after, automation, later=later, ctx=_inside(ctx, by, run))
        if ended is not None:
            self.automations[ended.id] = ended
        if by.mover is not Mover.WORKER:
            self.tx.wake(TOLD)
        return after


@dataclass(frozen=True, slots=True)
class EndRun:
    """The arguments of `end`."""

    run: str
    ending: Ending
    by: By
    ctx: Context = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class EndHeld:
    """The arguments of `end_held`."""

    row: Run
    ending: Ending
    by: By
    ctx: Context = field(kw_only=True)


def end_many(tx: Tx, asked: Sequence[EndRun]) -> list[Run | Refused]:
    """As `end`, for each of them."""
    wanted = [ask.run for ask in asked]
    found = tx.runs.automations_of(wanted)
    automations = _locked(tx, found.values(), asked)  # before the runs' own rows: the usual lock order
    this = _Ending(tx, automations, tx.runs.lock_some(wanted))
    return [this.end(ask.run, ask) for ask in asked]


def end_many_held(tx: Tx, asked: Sequence[EndHeld]) -> list[Run | Refused]:
    """As `end_held`, for each of them."""
    rows = {ask.row.id: ask.row for ask in asked}
    this = _Ending(tx, _locked(tx, {row.automation_id for row in rows.values()}, asked), rows)
    in_order = sorted(asked, key=lambda ask: ask.row.id)  # the usual order of changing rows
    answers = {id(ask): this.end(ask.row.id, ask) for ask in in_order}
    return [answers[id(ask)] for ask in asked]


def _locked(tx: Tx, automations: Iterable[str], asked: Sequence[EndRun | EndHeld]) -> dict[str, AutomationRow]:
    """Lock the automations of runs that end, and release the triggers that wait for one of their runs."""
    good = all(ask.ending.state is RunState.SUCCEEDED for ask in asked)
    rows = tx.automations.lock_some(automations, stays=_unmoved_by_success if good else None)
    awaited = [row.id for row in rows.values() if not snapshots.side_by_side(row)]
    if awaited and tx.triggers.release(awaited):  # before the deferred writes, so that those are sent together
        tx.wake(AUTOMATIONS)
    return rows


def _unmoved_by_success(row: AutomationRow) -> bool:
    return row.failures == 0 and snapshots.side_by_side(row)


@batched(EndRun, end_many)
def end(tx: Tx, run: str, ending: Ending, by: By, *, ctx: Context) -> Run:
    """End a run in one transaction: run, trigger event, tracking bead, bus event, failure streak, retry, held triggers.

    Raises RunUnknown, IllegalMove, LeaseLost.
    """
    return one(end_many(tx, [EndRun(run, ending, by, ctx=ctx)]))


@batched(EndHeld, end_many_held)
def end_held(tx: Tx, row: Run, ending: Ending, by: By, *, ctx: Context) -> Run:
    """As `end`, for the holder of a command's run, with the row it already has: the row is not read again.

    Raises IllegalMove, LeaseLost, or StaleRun when another process ended or took over the run.
    """
    return one(end_many_held(tx, [EndHeld(row, ending, by, ctx=ctx)]))


def end_if_active(tx: Tx, run: str, ending: Ending, by: By, *, ctx: Context) -> Run | None:
    """As `end`, but does nothing and returns None for a run that has ended or is deleted."""
    found = tx.runs.get(run)
    if found is None or found.ended:
        return None
    try:
        return end(tx, run, ending, by, ctx=ctx)
    except IllegalMove:
        locked = tx.runs.lock(run)
        if locked is not None and locked.ended:  # ended after the first read; nothing was written here yet
            return None
        raise


def lock_automation_of(tx: Tx, run: str) -> None:
    """Lock the run's automation, before the run's own row, as every transaction does that may end a run."""
    automation = tx.runs.automation_of(run)
    if automation is not None:
        tx.automations.lock(automation)


def replace_by_policy(tx: Tx, run: str, *, ctx: Context) -> None:
    """End a run that a newer one replaces. A run that ended meanwhile is left as it is."""
    end_if_active(tx, run, Ending(RunState.CANCELED, "replaced"), By(Mover.POLICY, ctx.actor.name), ctx=ctx)


def _ended(moved: Moved, ending: Ending) -> Run:
    run = changed(
        moved.run,
        error=ending.error[:LONGEST_ERROR],
        exit_code=ending.exit_code,
        output_tail=ending.output_tail,
        summary=ending.summary or moved.run.summary,
        completion_id=ending.completion_id or moved.run.completion_id,
        grade=ending.grade,
        pending=None,
        taken_by=None,
        taken_at=None,
        stood=_stood(moved),
        lifts_at=None if ending.login is None else ending.login.until,
        question=ending.question,
    )
    duration = ending.duration
    if duration is None and run.started_at is not None:
        duration = moved.at - run.started_at
    return changed(run, duration=duration)


def _stood(moved: Moved) -> timedelta | None:
    """How long its clock stood in all, also for a run that ends while a person has it."""
    run = moved.run
    return (
        run.stood if run.taken_at is None else (run.stood or timedelta(0)) + max(moved.at - run.taken_at, timedelta(0))
    )


def _write(  # noqa: PLR0913  all that an end touches
    tx: Tx,
    moved: Moved,
    ending: Ending,
    before: Run,
    after: Run,
    automation: AutomationRow | None,
    *,
    later: datetime | None,
    ctx: Context,
) -> AutomationRow | None:
    """Write the end and what follows from it; returns the automation's row afterwards. `later`: when it is retried."""
    tx.runs.end(before, after)
    tell(tx, moved, _ending_data(ending))
    _settle_trigger_event(tx, after)
    _close_bead(tx, after, ctx.now)
    tx.events.append(_ended_event(before, after, ctx, final=later is None))
    if after.action == AgentAction.kind:
        _after_agent(tx, before, after, ctx=ctx)
        logins.after_run(tx, after, ending.login, ctx=ctx)
        if next_turn(tx, after, ctx=ctx) is not None:
            after, later = changed(after, fingerprint=""), None  # the messages that waited go on with it
        if before.continued_by is not None and before.ended_at is None:
            pass_turn(tx, after, ctx=ctx)
    if after.state is RunState.SUCCEEDED and "succeeded" in snapshots_of(after).policies.notify.on:
        payload = {"run": after.id, "state": after.state.value}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.NOTIFY_RUN_TERMINAL, payload, ctx.now))
    needs_somebody = needs.open_of_run(tx, after, ctx=ctx)
    if automation is None:
        return None
    if later is not None:
        again(tx, after, later, ctx=ctx)
    if after.state is RunState.SUCCEEDED and automation.failures:  # only then may there be items of its failures
        settling.of_success(tx, after.automation, ctx=ctx)
    counted = _count(tx, after, automation, tried_again=later is not None, ctx=ctx)
    if needs_somebody and needs.disabled(counted) is not None:
        settling.of_disabled(tx, after.automation, ctx=ctx)
    return counted


def snapshots_of(run: Run) -> Automation:
    return snapshots.read(text_of(run.definition))


def tell(tx: Tx, moved: Moved, data: Mapping[str, Any] | None = None) -> None:
    tx.runs.add_event(told(moved, data))


def _ending_data(ending: Ending) -> dict[str, Any]:
    data: dict[str, Any] = {"reason": ending.reason} if ending.reason else {}
    if ending.exit_code is not None:
        data["exit_code"] = ending.exit_code
    if ending.grade is not None:
        data["grade"] = ending.grade.value
    return data


def _settle_trigger_event(tx: Tx, run: Run) -> None:
    if run.trigger_event is None:
        return
    match run.state:
        case RunState.SUCCEEDED:
            tx.trigger_events.settle(run.trigger_event, "completed", run.reason)
        case RunState.SKIPPED:
            tx.trigger_events.settle(run.trigger_event, "skipped", run.reason)
        case _:
            tx.trigger_events.settle(run.trigger_event, "failed", run.reason or run.state.value)


def _close_bead(tx: Tx, row: Run, now: datetime) -> None:
    """Close the tracking bead without an event; one that a person closed or deleted is no error."""
    if row.bead is not None:
        tx.beads.close(row.bead, now)


_EVENTS = {
    RunState.SUCCEEDED: "automation.completed",
    RunState.SKIPPED: "automation.skipped",
    RunState.CANCELED: "automation.canceled",
    RunState.NEEDS_HUMAN: "automation.needs_human",
}


def _inside(ctx: Context, by: By, run: str) -> Context:
    """The events of an end name who moved the run, and the run as their cause."""
    return changed(ctx, actor=changed(ctx.actor, name=by.actor, run=run))


def _ended_event(before: Run, run: Run, ctx: Context, *, final: bool) -> Any:
    """`final` is false in the event of a failure that is tried again."""
    name = _EVENTS.get(run.state, "automation.failed")
    if run.wisp is not None and run.state is RunState.SUCCEEDED:
        name = "automation.finished"  # `automation.completed` was emitted when its wisp was cooked
    message = (run.error or run.reason or run.state.value)[:MESSAGE_BYTES]
    payload: dict[str, Any] = {
        "automation": run.automation,
        "run": run.id,
        "attempt": run.attempt,
        "final": final,
        "state": run.state.value,
        "reason": run.reason or None,
        "grade": None if run.grade is None else run.grade.value,
        "exit_code": run.exit_code,
        "output_tail": run.output_tail[-LONGEST_ERROR:] or None,
    }
    if run.question is not None:
        payload["question"] = dict(run.question)
        message = str(run.question["text"])[:MESSAGE_BYTES]
    if before.ended_at is not None:  # a person has resolved it
        payload["before"] = {"state": before.state.value, "ended_at": rfc3339(before.ended_at)}
    return ctx.event(name, subject=run.automation, message=message, payload=payload)


def _after_agent(tx: Tx, before: Run, row: Run, *, ctx: Context) -> None:
    """Queue the outbox item that follows an agent run's end: stop its session."""
    run = row
    if before.state is RunState.RUNNING and row.node is not None:
        due = ctx.now + LAST_WORDS if run.completion_id is not None else ctx.now
        payload = {"session": run.id, "run": run.id, "node": row.node}
        tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.STOP_SESSION, payload, due))


def retry_at(
    row: Run, automation: AutomationRow | None, now: datetime, *, nothing_ran: bool = False
) -> datetime | None:
    """When it is tried again, by its policy or because nothing of it ran; None if this was the last attempt."""
    if automation is None or not automation.enabled or row.state not in {RunState.FAILED, RunState.TIMED_OUT}:
        return None
    if row.continued_by is not None or row.reason == SkipReason.BUDGET:
        return None  # another run goes on with it already; or nothing is left until midnight
    has_other = (row.in_force or {}).get("fallback") == FALLBACK_NAMED
    if row.reason == SkipReason.PROVIDER_LIMIT and has_other and row.lifts_at is not None:
        return now  # with the fallback, which has a limit of its own
    if row.stage is Stage.SETUP:
        return None  # a workspace that cannot be made ready is mended by a person
    # Whoever started it by hand sees that nothing ran, and can go on without waiting for another try.
    soon = start_again(row.attempt, now) if nothing_ran and row.trigger_kind != TriggerKind.MANUAL else None
    later = soon or retry_decision(snapshots_of(row).policies.retry, Outcome(row.state.value), row.attempt, now)
    if later is None:
        return None
    return later.at if row.lifts_at is None else max(later.at, row.lifts_at)


def again(tx: Tx, row: Run, at: datetime, *, ctx: Context) -> Run:
    """Make a run that does the same again, with a trigger event of its own: the history tells both."""
    new = retry_of(row, ctx.ids.make("run"), ctx.now, enriched=row.action == AgentAction.kind)
    event = None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event)
    if event is not None:  # retention may have deleted it
        repeated = _repeated(event, ctx.ids.make("tev"), row, new, ctx.now)
        tx.trigger_events.insert(repeated)
        new = replace(new, trigger_event=repeated.id)
    if new.deadline_at is not None:
        new = replace(new, deadline_at=new.deadline_at + (at - ctx.now))
    prefix = (row.bead or "gc-").rpartition("-")[0]
    data = {"retry_of": row.id, "at": rfc3339(at)}
    made = add_run(tx, new, prefix=prefix, ctx=ctx.inside(None), data=data, due_at=at)
    if row.continues is not None:  # it works in the place of its conversation, which must be its own
        hand_over(tx, row, made.id)
        if base_of(tx, row).id != row.id:  # what it waits for is still at work, and passes its place to what comes next
            tx.runs.continued(row.id, made.id)
    return made


def _repeated(event: TriggerEvent, event_id: str, row: Run, new: Run, now: datetime) -> TriggerEvent:
    return changed(
        event, id=event_id, status="fired", reason=f"retry of {row.id}", run=new.id, dedup_key=None, count=1,
        first_at=now, last_at=now,
    )  # fmt: skip


def _count(tx: Tx, row: Run, automation: AutomationRow, *, tried_again: bool, ctx: Context) -> AutomationRow:
    """Count consecutive failures; the one that reaches the limit disables the automation, with one event."""
    run = row
    if tried_again or run.state is RunState.CANCELED or run.reason in _NOT_COUNTED:
        return automation
    reason = SkipReason.PROJECT_MISSING if run.reason == SkipReason.PROJECT_MISSING else None
    by_hand = run.trigger_kind in {TriggerKind.MANUAL, MESSAGE}
    limit = snapshots_of(run).policies.auto_disable_after
    counted = streak(automation.failures, Outcome(run.state.value), limit=limit, by_hand=by_hand, reason=reason)
    if not (counted.disable and automation.enabled):
        if counted.failures != automation.failures:
            tx.automations.count_failures(automation.id, counted.failures)
            return replace(automation, failures=counted.failures)
        return automation
    why = (
        f"{needs.BY_FAILURES}{counted.failures} times in a row, last with {(run.reason or run.state).replace('_', ' ')}"
    )
    if line := last_line(run.error):
        why += f": {line}"
    off = replace(
        automation, failures=counted.failures, enabled=False, disabled_reason=why, quiet_at=None, updated_at=ctx.now
    )
    tx.automations.save(off)
    tx.triggers.disarm(automation.id)
    payload = {"automation": automation.scoped_name, "reason": "failures", "failures": counted.failures, "run": run.id}
    tx.events.append(ctx.event("automation.disabled", subject=automation.scoped_name, message=why, payload=payload))
    found = needs.disabled(off)
    if found is not None:
        needs.open_item(tx, found, ctx=ctx)
    tx.wake(AUTOMATIONS)
    return off
