"""The scheduler's transactions: find the triggers that are due, and fire, skip or hold each."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lamplighter.domain.acts import Act
from lamplighter.domain.automations.catch_up import Missed, Slot, plan
from lamplighter.domain.automations.decisions import (
    Go,
    Hold,
    SkipReason,
    SkipSlot,
    blocked_by,
    overlap,
)
from lamplighter.domain.automations.gates import Checked, Due, Evidence, NotDue, Waiting, check
from lamplighter.domain.automations.model import Automation, Condition, Event, Gate, Trigger
from lamplighter.domain.automations.state import TriggerState, after_firing, passed_over
from lamplighter.domain.events import Event as BusEvent
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.ids import IdSource
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.firing import Cause, active_runs, fire
from lamplighter.services.automations.registering import quiet_at
from lamplighter.services.automations.waiting import waiting_events
from lamplighter.services.rules import Rules
from lamplighter.services.runs.review import replace_by_policy
from lamplighter.services.runs.workers import Started, StartGrant
from lamplighter.store.automations import AutomationRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import BLOCKED, TriggerRow
from lamplighter.store.tx import Tx

SCAN_AT_ONCE = 5000
PUT_ASIDE = timedelta(minutes=1)


@dataclass
class PassReport:
    """What one pass did: the runs it fired, those it also started, slots skipped, and triggers looked at."""

    fired: list[str] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    skipped: int = 0
    looked_at: int = 0


@dataclass(frozen=True)
class _Pass:
    """One transaction of the scheduler, with its report."""

    tx: Tx
    rules: Rules
    ids: IdSource
    act: Act
    report: PassReport
    start_grant: StartGrant | None = None


@dataclass(frozen=True)
class _Work:
    """One due trigger and its automation within a pass."""

    of: _Pass
    row: AutomationRow
    automation: Automation
    trigger: Trigger
    blocked: SkipReason | None

    @property
    def tx(self) -> Tx:
        return self.of.tx

    @property
    def rules(self) -> Rules:
        return self.of.rules

    @property
    def ids(self) -> IdSource:
        return self.of.ids

    @property
    def act(self) -> Act:
        return self.of.act

    @property
    def gate(self) -> Gate:
        return self.trigger.gate


@dataclass(frozen=True)
class Peek:
    """What an idle scheduler needs to know: whether there is an unseen event, and when the next trigger is due."""

    unseen: bool
    next_due_at: datetime | None


def peek(tx: Tx, position: int) -> Peek:
    return Peek(tx.events.head() > position, tx.triggers.next_due_at())


def fire_due(
    tx: Tx, *, limit: int, rules: Rules, ids: IdSource, act: Act, start_grant: StartGrant | None = None
) -> PassReport:
    """Look at the triggers that are due, the longest due first, and fire, skip or hold each."""
    report = PassReport()
    due = tx.triggers.due(act.at, limit=limit)
    if not due:
        return report
    rows = tx.automations.some(one.automation for one in due)
    this = _Pass(tx, rules, ids, act, report, start_grant)
    for trigger in due:
        report.looked_at += 1
        _look(this, rows[trigger.automation], trigger)
    return report


def due_keys(tx: Tx, now: datetime, *, limit: int) -> list[tuple[str, str]]:
    """Which triggers are due, by automation and id."""
    return [(one.automation, one.id) for one in tx.triggers.due(now, limit=limit)]


def fire_alone(tx: Tx, key: tuple[str, str], *, rules: Rules, ids: IdSource, act: Act) -> PassReport:
    """Process one due trigger by itself, so that a trigger that fails does not stop the others of its batch."""
    report = PassReport(looked_at=1)
    row = tx.automations.lock(key[0])
    found = None if row is None else next((one for one in tx.triggers.of(key[0]) if one.id == key[1]), None)
    due_at = None if found is None else found.state.next_due_at
    if row is not None and found is not None and found.armed and due_at is not None and due_at <= act.at:
        _look(_Pass(tx, rules, ids, act, report), row, found)
    return report


def put_aside(tx: Tx, key: tuple[str, str], error: str, *, act: Act) -> None:
    """Put off a trigger whose processing failed by PUT_ASIDE, and emit `automation.error`."""
    row = tx.automations.lock(key[0])
    found = None if row is None else next((one for one in tx.triggers.of(key[0]) if one.id == key[1]), None)
    if row is None or found is None:
        return
    tx.triggers.save_state(replace(found, state=replace(found.state, next_due_at=act.at + PUT_ASIDE)))
    tx.events.append(act.event("automation.error", subject=row.scoped_name, message=error[:300]))


def fire_checked(  # noqa: PLR0913  which trigger, what it said, and what every transaction of firing carries
    tx: Tx, automation: str, trigger: str, result: Checked, *, rules: Rules, ids: IdSource, act: Act
) -> PassReport:
    """Record how a condition's command ended, and fire if it passed.

    The rows are read again, because they may have changed while the command ran.
    """
    report = PassReport(looked_at=1)
    row = tx.automations.lock(automation)
    found = None if row is None else next((one for one in tx.triggers.of(automation) if one.id == trigger), None)
    if row is None or found is None or not found.armed:
        return report
    told = (
        "passed" if result.exit_code == 0 else "timed out" if result.exit_code is None else f"exit {result.exit_code}"
    )
    if found.check_result != told:
        tx.triggers.checked(found, told, act.at)
    if result.exit_code == 0:
        _look(_Pass(tx, rules, ids, act, report), row, found, result)
    return report


def scan_events(tx: Tx, position: int, now: datetime) -> int:
    """Mark the triggers that listen to the types of new events as due; returns the position reached.

    The position is saved only when a trigger was marked or a full batch was scanned: after a restart some events may be
    scanned again, but none is missed.
    """
    types, seen = tx.events.types_after(position, limit=SCAN_AT_ONCE)
    if not types:
        return position
    marked = tx.triggers.mark_due(event_keys(types), now)
    if marked or seen - position >= SCAN_AT_ONCE:
        tx.cities.scanned(seen)
    return seen


def scanned_to(tx: Tx) -> int:
    city = tx.cities.find()
    return 0 if city is None else city.events_scanned


def event_keys(types: Iterable[str]) -> set[str]:
    """Every `on` pattern that one of these types matches: the type itself, the families it is in, and `*`."""
    keys = {"*"}
    for name in types:
        words = name.split(".")
        keys.add(name)
        keys |= {".".join(words[:count]) + ".*" for count in range(1, len(words))}
    return keys


def raise_quiet(tx: Tx, *, limit: int, rules: Rules, act: Act) -> list[str]:
    """Emit `automation.quiet` for each automation that has been silent for too long, once for each silence.

    For an automation that is blocked the wait starts again instead.
    """
    raised = []
    for row in tx.automations.quiet(act.at, limit=limit):
        automation = snapshots.of_row(row)
        if blocked_by(rules.switches(row)):
            tx.automations.set_quiet(row.id, quiet_at(automation, act.at))
            continue
        tx.automations.set_quiet(row.id, None)
        last = max((one.state.last_fired_at or row.armed_at for one in tx.triggers.of(row.id)), default=row.armed_at)
        since = rfc3339(max(last, row.armed_at))
        message = f"nothing has fired since {since}"
        tx.events.append(
            act.event("automation.quiet", subject=row.scoped_name, message=message, payload={"since": since})
        )
        raised.append(row.scoped_name)
    return raised


def _look(this: _Pass, row: AutomationRow, found: TriggerRow, evidence: Evidence | None = None) -> None:
    tx = this.tx
    try:
        automation = snapshots.of_row(row)
    except ValueError as error:  # written by a newer version of the program: it does not fire here until it can be read
        tx.triggers.disarm(row.id)
        told = this.act.event("automation.unreadable", subject=row.scoped_name, message=str(error)[:300])
        tx.events.append(told)
        return
    trigger = automation.trigger(found.id)
    if trigger is None:
        tx.triggers.remove(found)
        return
    blocked = blocked_by(this.rules.switches(row))
    work = _Work(this, row, automation, trigger, blocked)
    tx.triggers.save_state(_report(work, found, evidence))


def _report(work: _Work, found: TriggerRow, evidence: Evidence | None) -> TriggerRow:
    """Check the trigger's gate and write what follows; returns the trigger's new row, which the caller saves."""
    now, gate = work.act.at, work.gate
    timing = work.rules.timing(work.automation, work.trigger.id)
    if isinstance(gate, Event) and work.blocked is not None:
        return replace(found, held_by=BLOCKED)
    more = False
    raw: list[BusEvent] = []
    if isinstance(gate, Event):
        events, raw, more = waiting_events(work.tx, gate, found.state.event_cursor)
        evidence = Waiting(events)
    verdict = check(gate, found.state, now, timing, evidence, automation=work.automation.scoped_name)
    if isinstance(verdict, NotDue):
        cursor = found.state.event_cursor if verdict.cursor is None else verdict.cursor
        at = now if more else verdict.next_due_at
        return replace(found, state=replace(found.state, next_due_at=at, event_cursor=cursor))
    if isinstance(gate, Event):
        return _fire_events(work, found, verdict, raw, more=more)
    return _fire_slots(work, found, verdict)


def _fire_events(work: _Work, found: TriggerRow, due: Due, raw: list[BusEvent], *, more: bool) -> TriggerRow:
    assert due.taken is not None  # noqa: S101  an event gate is opened by nothing else
    active = active_runs(work.tx, work.row, work.automation)
    match overlap(work.automation.policies.overlap, active, work.act.at):
        case SkipSlot(_, run) | Hold(run):
            return replace(found, held_by=run)  # the cursor stays where it is: no event is skipped
        case Go(replaces):
            _replace(work, replaces)
    wanted = {event.seq for event in due.taken.events}
    events = [event.as_json() for event in raw if event.seq in wanted]
    cause = Cause(
        work.trigger.id,
        work.gate.kind,
        due.reason,
        slot=due.slot,
        key=due.slot,
        due_at=due.first_at,
        payload={"events": events},
        causes=due.taken.causes,
    )
    _fire(work, cause)
    left = more or due.taken.cursor < raw[-1].seq
    state = replace(
        found.state, last_fired_at=work.act.at, last_slot=due.slot, event_cursor=due.taken.cursor,
        next_due_at=work.act.at if left else None,
    )  # fmt: skip
    return replace(found, state=state, last_skip=None)


def _fire_slots(work: _Work, found: TriggerRow, due: Due) -> TriggerRow:
    now, gate = work.act.at, work.gate
    timing = work.rules.timing(work.automation, work.trigger.id)
    planned = plan(work.automation.policies.catch_up, gate, due, now, timing)
    if planned.missed is not None:
        found = _missed(work, found, planned.missed)
    for place, slot in enumerate(planned.fire):
        outcome = _fire_slot(work, found, slot, due, first=place == 0)
        if isinstance(outcome, Hold):
            return replace(found, held_by=outcome.run, state=replace(found.state, next_due_at=slot.at))
        found = outcome
    if isinstance(gate, Condition):
        return replace(found, state=replace(found.state, next_due_at=None))
    if found.state.next_due_at is None or found.state.next_due_at <= now:
        found = replace(found, state=passed_over(gate, found.state, now, timing))
    return found


def _fire_slot(work: _Work, found: TriggerRow, slot: Slot, due: Due, *, first: bool) -> TriggerRow | Hold:
    """Fire one slot or skip it; returns Hold when it must stay due."""
    now, gate = work.act.at, work.gate
    timing = work.rules.timing(work.automation, work.trigger.id)
    if work.blocked is not None:
        return _skip(work, _passed(gate, found, now, work), work.blocked, slot)
    match overlap(work.automation.policies.overlap, active_runs(work.tx, work.row, work.automation), now):
        case Hold() as hold:
            return hold
        case SkipSlot(reason, run):
            if not first:  # slots that are caught up run one after another
                return Hold(run)
            return _skip(work, _passed(gate, found, now, work), reason, slot)
        case Go(replaces):
            _replace(work, () if _fired_already(work, slot, replaces) else replaces)
    late = f", {round(slot.late.total_seconds())} s late" if slot.late and "late" not in due.reason else ""
    cause = Cause(
        work.trigger.id, gate.kind, due.reason + late, slot=slot.key, key=slot.key, due_at=slot.at,
    )  # fmt: skip
    if not _fire(work, cause):
        return _passed(gate, found, now, work)
    return replace(found, state=after_firing(gate, found.state, slot.key, now, timing), last_skip=None)


def _fired_already(work: _Work, slot: Slot, replaces: tuple[str, ...]) -> bool:
    """Whether the slot has fired before, as after the clock was set back; then no run is replaced for it."""
    return bool(replaces) and work.tx.trigger_events.of_key(work.row.id, work.trigger.id, slot.key) is not None


def _fire(work: _Work, cause: Cause) -> bool:
    """Fire and add to the report; False when that slot was fired before."""
    report, start_grant = work.of.report, work.of.start_grant
    if start_grant is not None and len(report.started) >= start_grant.room:
        start_grant = None
    fired = fire(work.tx, work.row, cause, rules=work.rules, ids=work.ids, act=work.act, start_grant=start_grant)
    if fired is None:
        return False
    report.fired.append(fired.run)
    if fired.started is not None:
        report.started.append(fired.started)
    return True


def _replace(work: _Work, runs: Iterable[str]) -> None:
    for run in runs:
        replace_by_policy(work.tx, run, ids=work.ids, act=work.act)


def _passed(gate: Gate, found: TriggerRow, now: datetime, work: _Work) -> TriggerRow:
    timing = work.rules.timing(work.automation, work.trigger.id)
    return replace(found, state=passed_over(gate, found.state, now, timing))


def _missed(work: _Work, found: TriggerRow, missed: Missed) -> TriggerRow:
    slot = Slot("", missed.last_at)
    return _skip(work, found, SkipReason.MISSED, slot, count=missed.count, first_at=missed.first_at)


def _skip(
    work: _Work, found: TriggerRow, reason: SkipReason, slot: Slot, *, count: int = 1, first_at: datetime | None = None
) -> TriggerRow:
    """Record a skipped slot; consecutive skips for the same reason share one record with a count and one event."""
    tx, now = work.tx, work.act.at
    work.of.report.skipped += count
    if found.last_skip is not None and tx.trigger_events.repeat(found.last_skip, reason.value, now, count=count):
        return found
    event = TriggerEvent(
        id=work.ids.make("tev"),
        automation_id=work.row.id,
        automation=work.row.scoped_name,
        trigger=work.trigger.id,
        kind=work.gate.kind.value,
        status="skipped",
        reason=reason.value,
        first_at=first_at or slot.at,
        last_at=now,
        slot=slot.key or None,
        count=count,
        due_at=slot.at,
    )
    tx.trigger_events.insert(event)
    payload = {"trigger": work.trigger.id, "reason": reason.value, "due_at": rfc3339(slot.at), "count": count}
    told = work.act.event("automation.skipped", subject=work.row.scoped_name, message=reason.value, payload=payload)
    tx.events.append(told)
    return replace(found, last_skip=event.id)


def state_of(row: TriggerRow) -> TriggerState:
    """The state for the gate's rules; for event and condition triggers without `next_due_at`, the scheduler's mark."""
    timed = row.event_key is None and row.kind != "condition"
    return row.state if timed else replace(row.state, next_due_at=None)
