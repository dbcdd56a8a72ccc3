"""Firing an automation: trigger event, run, tracking bead, run event, outbox item and bus event in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from lamplighter.domain.automations.admission import (
    Decision,
    Fire,
    Hold,
    Origin,
    Replace,
    Skip,
    barred,
    by_budget,
    decide,
    while_a_person_decides,
)
from lamplighter.domain.automations.conversations import key_of
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.automations.model import AgentAction, Automation, TriggerKind, deadline
from lamplighter.domain.automations.policies import Overlap
from lamplighter.domain.runs.model import Run, RunState, first_state
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import Conflict, NotFound
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import changed, record
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.registering import quiet_at
from lamplighter.services.context import Context
from lamplighter.services.inbox import settling
from lamplighter.services.rules import Rules
from lamplighter.services.runs import budgets
from lamplighter.services.runs.continuing import base_of, locked_last, take_up
from lamplighter.services.runs.creating import add_run
from lamplighter.services.runs.ending import replace_by_policy
from lamplighter.services.runs.spoken import into, run_of_session, speaks_to
from lamplighter.services.runs.workers import Started, StartGrant, said
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine import Refused, batched, one
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

BY_HAND = "manual"
MOST_NAMES = 5000
MOST_OF_RIGS = 5


@record
class Cause:
    """What opened the gate. A cause with a `key` fires its trigger once; `causes` are the automations behind it."""

    trigger: str
    kind: TriggerKind
    reason: str
    slot: str | None = None
    key: str | None = None
    due_at: datetime | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = ()


@record
class Fired:
    run: str
    trigger_event: str
    bead: str
    started: Started | None = None
    """Set when the process that fired the run also started it; that process carries it out."""


_LIFTED_BY = {
    SkipReason.RIG_SUSPENDED: "`lamp rig resume` lifts the suspension of a rig.",
    SkipReason.AUTOMATION_SUSPENDED: "`lamp automation resume` lifts it.",
}


class Blocked(Conflict):
    """A run by hand is refused while the city is paused, or the city, the rig or the automation is suspended."""

    def __init__(self, scoped_name: str, reason: SkipReason) -> None:
        super().__init__(
            f"{scoped_name} cannot run: {reason.replace('_', ' ')}.",
            hint=_LIFTED_BY.get(reason, "`lamp resume` lifts a pause or a suspension."),
        )
        self.reason = reason


class AutomationUnknown(NotFound):
    def __init__(
        self, scoped_name: str, near: str = "", hint: str = "`lamp automation list` shows those there are."
    ) -> None:
        super().__init__(f"There is no automation `{scoped_name}`{near}.".replace("?.", "?"), hint=hint)


class DefinitionBroken(Conflict):
    def __init__(self, scoped_name: str, why: str) -> None:
        super().__init__(f"The definition of {scoped_name} cannot be read: {why}.", hint="Mend its file.")


class AlreadyRunning(Conflict):
    def __init__(self, scoped_name: str, run: str, why: str = "") -> None:
        """`why` says what is in the way if the run is not under way."""
        super().__init__(
            f"{scoped_name} does not fire: {why} (run {run})."
            if why
            else f"{scoped_name} is already running (run {run}).",
            hint=f"See what it asks: `lamp run show {run}`."
            if why
            else f"Wait for its end, or cancel it: `lamp run cancel {run}`.",
        )
        self.run = run


@record
class Attempt:
    """A cause that asks an automation to fire. The caller holds the lock of the automation's row."""

    row: AutomationRow
    origin: Origin
    cause: Cause


def fire_if_admitted(
    tx: Tx, attempt: Attempt, *, rules: Rules, ctx: Context, start_grant: StartGrant | None = None
) -> Fired | Hold | Skip | None:
    """Ask admission, and carry out what it decides: fire, or end the runs in the way and fire.

    Hold and Skip are returned and write nothing: only the caller knows what becomes of a slot, of events or of a
    request. None when this cause has already fired its trigger; then no run is replaced for it either.
    """
    match _admission(tx, attempt, rules, ctx.now):
        case Hold() | Skip() as refused:
            return refused
        case Replace(runs):
            if _is_on_record(tx, attempt):
                return None
            for run in runs:
                replace_by_policy(tx, run, ctx=ctx)
        case Fire():
            pass
        case other:
            assert_never(other)
    return _fire(tx, attempt.row, attempt.cause, rules=rules, ctx=ctx, start_grant=start_grant)


def _admission(tx: Tx, attempt: Attempt, rules: Rules, now: datetime) -> Decision:
    """Runs are read only for a policy that depends on them."""
    row, policy = attempt.row, snapshots.of_row(attempt.row).policies.overlap
    automation = snapshots.of_row(row)
    turns = automation.session is not None
    active = [] if policy is Overlap.ALLOW else tx.runs.active_of(row.id, turns=turns)
    before = _goes_on_with(tx, row, automation, attempt.cause)
    if automation.session is not None and before is not None and before.state is RunState.NEEDS_HUMAN:
        decision: Decision = barred(rules.switches(row), attempt.origin) or while_a_person_decides(
            before.id, attempt.origin, now
        )
    elif automation.session is None and before is not None:
        # it comes next in its conversation
        decision = barred(rules.switches(row), attempt.origin) or Fire()
    else:
        decision = decide(rules.switches(row), policy, active, attempt.origin, now)
    if isinstance(decision, Hold | Skip) or not budgets.bounded(automation, rules):
        return decision
    return by_budget(decision, budgets.left_for(tx, row.id, automation, rules, now), attempt.origin)


def _goes_on_with(tx: Tx, row: AutomationRow, automation: Automation, cause: Cause) -> Run | None:
    """The last run, locked, of the conversation that the cause belongs to; None if it begins one, or has none."""
    if automation.session is not None:
        run = run_of_session(tx, automation.session)
    else:
        key = key_of(automation.continue_by(cause.trigger), cause.payload)
        run = None if key is None else tx.conversations.run_of(row.id, key)
    if run is None or tx.runs.get(run) is None:  # retention may have deleted it
        return None
    return locked_last(tx, run)


def _was_told(automation: Automation, before: Run) -> bool:
    """Whether the conversation that is named as a session is an agent's of the city: it is none to go on with here."""
    return automation.session is not None and speaks_to(before) is not None


def _is_on_record(tx: Tx, attempt: Attempt) -> bool:
    """Whether the cause has fired before, as a slot has after the clock was set back."""
    cause = attempt.cause
    return cause.key is not None and tx.trigger_events.of_key(attempt.row.id, cause.trigger, cause.key) is not None


def _fire(
    tx: Tx, row: AutomationRow, cause: Cause, *, rules: Rules, ctx: Context, start_grant: StartGrant | None
) -> Fired | None:
    """Write everything that belongs to a firing; None when this cause has already fired that trigger."""
    automation = snapshots.of_row(row)
    run_id = ctx.ids.make("run")
    event = _trigger_event(ctx.ids.make("tev"), row, cause, run_id, ctx.now)
    if not tx.trigger_events.insert(event):
        return None
    crash_point(CrashPoint.FIRE_AFTER_TRIGGER_EVENT)
    run = _run(run_id, row, automation, cause, rules, event)
    prefix, data = rules.prefix_of(row.rig), {"reason": cause.reason}
    key = key_of(automation.continue_by(cause.trigger), cause.payload)
    before = None if key is None and automation.session is None else _goes_on_with(tx, row, automation, cause)
    if before is not None and (before.action != AgentAction.kind or _was_told(automation, before)):
        before = None
    if before is not None:
        base = base_of(tx, before).id
        if automation.session is not None:
            run = changed(run, definition=into(before, automation, run.definition), rig=before.rig)
        run, data = changed(run, continues=base), data | {"continues": base}
    made = add_run(tx, run, prefix=prefix, ctx=ctx, data=data, start_grant=start_grant)
    if before is not None:
        take_up(tx, before, made, reason=cause.reason, ctx=ctx)
    if key is not None:
        tx.conversations.put(row.id, key, run_id)
    crash_point(CrashPoint.FIRE_AFTER_RUN)
    if automation.policies.quiet_after is not None:
        tx.automations.set_quiet(row.id, quiet_at(automation, ctx.now))
        if row.quiet_since is not None:
            settling.of_fired(tx, row.scoped_name, ctx=ctx)
    tx.events.append(_fired_event(row, cause, event, ctx))
    started = Started(made, said(made, event)) if made.state is RunState.RUNNING else None
    return Fired(run_id, event.id, made.bead or "", started)


@record
class ByHand:
    """A request to run now, made by the act's actor; requests with the same `key` make one run."""

    scoped_name: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None


@dataclass(frozen=True, slots=True)
class RunByHand:
    """The arguments of `run_by_hand`."""

    wanted: ByHand
    rules: Rules = field(kw_only=True)
    ctx: Context = field(kw_only=True)
    start_grant: StartGrant | None = field(default=None, kw_only=True)


def run_many_by_hand(tx: Tx, asked: Sequence[RunByHand]) -> list[Fired | Refused]:
    """As `run_by_hand`, for each of them."""
    names = {ask.wanted.scoped_name for ask in asked}
    rows = tx.automations.lock_some_named(names, stays=snapshots.side_by_side)
    return [_run_by_hand(tx, rows.get(ask.wanted.scoped_name), ask) for ask in asked]


@batched(RunByHand, run_many_by_hand)
def run_by_hand(tx: Tx, wanted: ByHand, *, rules: Rules, ctx: Context, start_grant: StartGrant | None = None) -> Fired:
    """Fire the automation now, regardless of its triggers and without changing their due times.

    Raises AutomationUnknown, DefinitionBroken, Blocked, or AlreadyRunning when its overlap policy says so.
    """
    return one(run_many_by_hand(tx, [RunByHand(wanted, rules=rules, ctx=ctx, start_grant=start_grant)]))


def _run_by_hand(tx: Tx, row: AutomationRow | None, ask: RunByHand) -> Fired | Refused:
    wanted, rules, ctx = ask.wanted, ask.rules, ask.ctx
    if row is None:
        return Refused(unknown(tx, wanted.scoped_name))
    try:
        snapshots.of_row(row)
    except ValueError as error:
        return Refused(DefinitionBroken(row.scoped_name, str(error)))
    if wanted.key is not None and (before := _fired_before(tx, row, wanted.key)) is not None:
        return before
    causes = () if ctx.run is None else tx.runs.causes([ctx.run]).get(ctx.run, ())
    payload = {"payload": dict(wanted.payload)} if wanted.payload else {}
    cause = Cause(BY_HAND, TriggerKind.MANUAL, "run by hand", key=wanted.key, payload=payload, causes=causes)
    fired = fire_if_admitted(tx, Attempt(row, Origin.HAND, cause), rules=rules, ctx=ctx, start_grant=ask.start_grant)
    if isinstance(fired, Hold | Skip):
        return Refused(_refusal(row, fired))
    if fired is None and wanted.key is not None:  # another transaction with this key was faster
        fired = _fired_before(tx, row, wanted.key)
    if fired is None:
        raise AssertionError("only a cause with a key fires nothing")
    return fired


def _refusal(row: AutomationRow, refused: Hold | Skip) -> Conflict:
    if refused.run is not None:
        return AlreadyRunning(row.scoped_name, refused.run, "" if isinstance(refused, Hold) else refused.why)
    assert isinstance(refused, Skip)  # noqa: S101  by hand nothing is held, because the caller waits for the answer
    if refused.reason is SkipReason.BUDGET:
        return budgets.BudgetUsedUp(row.scoped_name, refused.why)
    return Blocked(row.scoped_name, refused.reason)


def _fired_before(tx: Tx, row: AutomationRow, key: str) -> Fired | None:
    """The run that an earlier request with that key made; None when there is none."""
    event = tx.trigger_events.of_key(row.id, BY_HAND, key)
    if event is None or event.run is None:
        return None
    run = tx.runs.get(event.run)
    return Fired(event.run, event.id, "" if run is None else run.bead or "")


def locked_named(tx: Tx, scoped_name: str) -> AutomationRow:
    row = tx.automations.lock_named(scoped_name)
    if row is None:
        raise unknown(tx, scoped_name)
    return row


def unknown(tx: Tx, scoped_name: str) -> AutomationUnknown:
    of_rigs = [one.scoped_name for one in tx.automations.page(after=f"{scoped_name}:rig:", limit=MOST_OF_RIGS)]
    of_rigs = [name for name in of_rigs if name.startswith(f"{scoped_name}:rig:")]
    if of_rigs:
        rig = of_rigs[0].removeprefix(f"{scoped_name}:rig:")
        return AutomationUnknown(
            scoped_name,
            f" of the city; rigs have {', '.join(f'`{one}`' for one in of_rigs)}",
            hint=f"Add `--rig {rig}`, or name it as `{of_rigs[0]}`.",
        )
    names = [one.scoped_name for one in tx.automations.page(limit=MOST_NAMES)]
    return AutomationUnknown(scoped_name, did_you_mean(scoped_name, names))


def _trigger_event(event: str, row: AutomationRow, cause: Cause, run: str, now: datetime) -> TriggerEvent:
    return TriggerEvent(
        id=event,
        automation_id=row.id,
        automation=row.scoped_name,
        trigger=cause.trigger,
        kind=cause.kind.value,
        status="fired",
        reason=cause.reason,
        first_at=now,
        last_at=now,
        slot=cause.slot,
        dedup_key=cause.key,
        payload=dict(cause.payload) or None,
        run=run,
        due_at=cause.due_at,
    )


def _run(run: str, row: AutomationRow, automation: Automation, cause: Cause, rules: Rules, event: TriggerEvent) -> Run:
    now = event.first_at
    return Run(
        id=run,
        automation=automation.scoped_name,
        state=first_state(enriched=isinstance(automation.action, AgentAction)),
        created_at=now,
        trigger_kind=event.kind,
        trigger_event=event.id,
        definition=snapshots.shape_of(row),
        causes=cause.causes,
        deadline_at=now + deadline(automation, cause.kind, rules.deadline),
        last_activity_at=now,
        automation_id=row.id,
        action=automation.action.kind.value,
        trigger=cause.trigger,
        rig=row.rig,
    )


def _fired_event(row: AutomationRow, cause: Cause, event: TriggerEvent, ctx: Context) -> Any:
    payload = {
        "automation": row.scoped_name,
        "run": event.run,
        "trigger": {"id": cause.trigger, "kind": event.kind, "event_id": event.id},
        "slot": cause.slot,
        "due_at": None if cause.due_at is None else rfc3339(cause.due_at),
        "reason": cause.reason,
    }
    inside = ctx.inside(event.run)  # the new run: what follows from the event is traced to it
    return inside.event("automation.fired", subject=row.scoped_name, message=cause.reason, payload=payload)
