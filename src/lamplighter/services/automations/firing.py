"""Firing an automation: trigger event, run, tracking bead, run event, outbox item and bus event in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.decisions import ActiveRun, Go, Hold, SkipReason, SkipSlot, blocked_by, overlap
from lamplighter.domain.automations.model import AgentAction, Automation, TriggerKind, deadline
from lamplighter.domain.automations.policies import Overlap
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.delivery.reach import stage_of
from lamplighter.domain.runs.model import Run, RunState, first_state
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.crash import CrashPoint, crash_point
from lamplighter.kit.errors import Conflict, NotFound
from lamplighter.kit.ids import IdSource
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import changed, record
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.registering import quiet_at
from lamplighter.services.rules import Rules
from lamplighter.services.runs.workers import Started, StartGrant, made_running, said, told_of_start
from lamplighter.store.automations import AutomationRow
from lamplighter.store.engine.batching import Call, Refused, batched, one
from lamplighter.store.run_rows import NewRunEvent, RunFacts, RunRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

TRACKING_ID = 8
"""Letters of a tracking bead's id: many are made, and the short ids are for beads that people type."""
BY_HAND = "manual"
MOST_NAMES = 5000


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
    def __init__(self, scoped_name: str, near: str = "") -> None:
        super().__init__(
            f"There is no automation `{scoped_name}`{near}.".replace("?.", "?"),
            hint="`lamp automation list` shows those there are.",
        )


class DefinitionBroken(Conflict):
    def __init__(self, scoped_name: str, why: str) -> None:
        super().__init__(f"The definition of {scoped_name} cannot be read: {why}.", hint="Mend its file.")


def fire(  # noqa: PLR0913  a firing, and what every transaction of firing carries
    tx: Tx,
    row: AutomationRow,
    cause: Cause,
    *,
    rules: Rules,
    ids: IdSource,
    act: Act,
    start_grant: StartGrant | None = None,
) -> Fired | None:
    """Write everything that belongs to a firing; None when this cause has already fired that trigger.

    The caller holds the automation's lock and writes the trigger's own state in the same transaction.
    """
    automation = snapshots.of_row(row)
    run_id = ids.make("run")
    event = _trigger_event(ids.make("tev"), row, cause, run_id, act.at)
    if not tx.trigger_events.insert(event):
        return None
    crash_point(CrashPoint.FIRE_AFTER_TRIGGER_EVENT)
    run = _run(run_id, row, automation, cause, rules, event)
    facts = RunFacts(row.id, automation.action.kind.value, cause.trigger, rig=row.rig)
    prefix = rules.prefix_of(row.rig)
    made = add_run(
        tx, RunRow(run, facts), prefix=prefix, ids=ids, act=act, data={"reason": cause.reason}, start_grant=start_grant
    )
    crash_point(CrashPoint.FIRE_AFTER_RUN)
    if automation.policies.quiet_after is not None:
        tx.automations.set_quiet(row.id, quiet_at(automation, act.at))
    tx.events.append(_fired_event(row, cause, event, act))
    started = Started(made, said(made, event)) if made.run.state is RunState.RUNNING else None
    return Fired(run_id, event.id, made.facts.bead or "", started)


def add_run(  # noqa: PLR0913  a run and everything that is written with it
    tx: Tx,
    row: RunRow,
    *,
    prefix: str,
    ids: IdSource,
    act: Act,
    data: Mapping[str, Any],
    due_at: datetime | None = None,
    start_grant: StartGrant | None = None,
) -> RunRow:
    """Insert the run with its tracking bead, its first event, and the outbox item that starts it.

    A run that `start_grant` covers is started at once and gets no item.
    """
    run = row.run
    facts = changed(row.facts, bead=_track(tx, run, prefix, ids, act))
    made = RunRow(run, facts)
    events = [NewRunEvent(run.id, act.at, "run_created", act.actor, to_state=run.state, data=data)]
    if start_grant is not None and start_grant.takes(facts.action, facts.rig):
        made, moved = made_running(made, start_grant.worker, act.at)
        events.append(told_of_start(moved))
    else:
        stage = stage_of(run.id, facts.rig, facts.action)
        tx.outbox.add(new_item(ids.make("out"), first_item(facts.action), stage, due_at or act.at))
    tx.runs.insert(made, events)
    return made


def first_item(action: str) -> ItemKind:
    return ItemKind.ENQUEUE_ENRICH if action == AgentAction.kind else ItemKind.ENQUEUE_EXECUTE


@record
class ByHand:
    """A request to run now, made by the act's actor; requests with the same `key` make one run."""

    scoped_name: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None


def run_many_by_hand(tx: Tx, calls: Sequence[Call]) -> list[Fired | Refused]:
    """As `run_by_hand`, for each call."""
    names = {call.args[0].scoped_name for call in calls}
    rows = tx.automations.lock_some_named(names, stays=snapshots.side_by_side)
    return [_run_by_hand(tx, rows.get(call.args[0].scoped_name), *call.args, **call.kwargs)
            for call in calls]  # fmt: skip


@batched(run_many_by_hand)
def run_by_hand(
    tx: Tx, wanted: ByHand, *, rules: Rules, ids: IdSource, act: Act, start_grant: StartGrant | None = None
) -> Fired:
    """Fire the automation now, regardless of its triggers and without changing their due times.

    Raises AutomationUnknown, DefinitionBroken, Blocked, or AlreadyRunning when its overlap policy says so.
    """
    fired: Fired = one(
        run_many_by_hand(tx, [Call((wanted,), {"rules": rules, "ids": ids, "act": act, "start_grant": start_grant})])
    )
    return fired


def _run_by_hand(  # noqa: PLR0913  what every firing carries, and the automation that was found
    tx: Tx,
    row: AutomationRow | None,
    wanted: ByHand,
    *,
    rules: Rules,
    ids: IdSource,
    act: Act,
    start_grant: StartGrant | None = None,
) -> Fired | Refused:
    if row is None:
        return Refused(unknown(tx, wanted.scoped_name))
    try:
        automation = snapshots.of_row(row)
    except ValueError as error:
        return Refused(DefinitionBroken(row.scoped_name, str(error)))
    if wanted.key is not None and (before := _fired_before(tx, row, wanted.key)) is not None:
        return before
    if blocked := blocked_by(rules.switches(row), by_hand=True):
        return Refused(Blocked(row.scoped_name, blocked))
    try:
        make_room(tx, row, automation, ids=ids, act=act)
    except AlreadyRunning as error:  # raised before anything is written
        return Refused(error)
    causes = () if act.run is None else tx.runs.causes([act.run]).get(act.run, ())
    payload = {"payload": dict(wanted.payload)} if wanted.payload else {}
    cause = Cause(BY_HAND, TriggerKind.MANUAL, "run by hand", key=wanted.key, payload=payload, causes=causes)
    fired = fire(tx, row, cause, rules=rules, ids=ids, act=act, start_grant=start_grant)
    if fired is None and wanted.key is not None:  # another transaction with this key was faster
        fired = _fired_before(tx, row, wanted.key)
    if fired is None:
        raise AssertionError("only a cause with a key fires nothing")
    return fired


def _fired_before(tx: Tx, row: AutomationRow, key: str) -> Fired | None:
    """The run that an earlier request with that key made; None when there is none."""
    event = tx.trigger_events.of_key(row.id, BY_HAND, key)
    if event is None or event.run is None:
        return None
    run = tx.runs.get(event.run)
    return Fired(event.run, event.id, "" if run is None else run.facts.bead or "")


class AlreadyRunning(Conflict):
    def __init__(self, scoped_name: str, run: str) -> None:
        super().__init__(
            f"{scoped_name} is already running (run {run}).",
            hint=f"Wait for its end, or cancel it: `lamp run cancel {run}`.",
        )
        self.run = run


def make_room(tx: Tx, row: AutomationRow, automation: Automation, *, ids: IdSource, act: Act) -> None:
    """Apply the overlap policy before a run by hand: end the active runs, or raise AlreadyRunning."""
    if automation.policies.overlap is Overlap.ALLOW:
        return
    match overlap(automation.policies.overlap, active_runs(tx, row, automation), act.at):
        case Go(replaces) if replaces:
            from lamplighter.services.runs.review import replace_by_policy

            for run in replaces:
                replace_by_policy(tx, run, ids=ids, act=act)
        case SkipSlot(_, run) | Hold(run):
            raise AlreadyRunning(row.scoped_name, run)


def active_runs(tx: Tx, row: AutomationRow, automation: Automation) -> list[ActiveRun]:
    """The active runs that a new run would overlap; empty when the policy allows any number."""
    if automation.policies.overlap is Overlap.ALLOW:
        return []
    return [ActiveRun(run, at) for run, at in tx.runs.active_of(row.id)]


def locked_named(tx: Tx, scoped_name: str) -> AutomationRow:
    row = tx.automations.lock_named(scoped_name)
    if row is None:
        raise unknown(tx, scoped_name)
    return row


def unknown(tx: Tx, scoped_name: str) -> AutomationUnknown:
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
    )


def _track(tx: Tx, run: Run, prefix: str, ids: IdSource, act: Act) -> str:
    """Create the run's tracking bead: never ready work, without `bead.*` events, closed when the run ends."""
    while True:
        bead = f"{prefix}-{ids.short(TRACKING_ID)}"
        if tx.beads.track(bead, f"automation:{run.automation}", sender=act.actor, run=run.id, now=act.at):
            return bead


def _fired_event(row: AutomationRow, cause: Cause, event: TriggerEvent, act: Act) -> Any:
    payload = {
        "run": event.run,
        "trigger": {"id": cause.trigger, "kind": event.kind, "event_id": event.id},
        "slot": cause.slot,
        "due_at": None if cause.due_at is None else rfc3339(cause.due_at),
        "reason": cause.reason,
    }
    inside = Act(act.actor, act.at, event.run)  # the new run: what follows from the event is traced to it
    return inside.event("automation.fired", subject=row.scoped_name, message=cause.reason, payload=payload)
