"""The scheduler's transactions: find the triggers that are due, and fire, skip or hold each."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lamplighter.domain.automations.admission import Hold, Origin, Skip, barred
from lamplighter.domain.automations.catch_up import Missed, Slot, plan
from lamplighter.domain.automations.conversations import alike
from lamplighter.domain.automations.decisions import SkipReason, blocked_by
from lamplighter.domain.automations.gates import Checked, Due, Evidence, NotDue, Waiting, check
from lamplighter.domain.automations.model import Automation, Condition, Event, Gate, Trigger
from lamplighter.domain.automations.state import TriggerState, after_firing, passed_over
from lamplighter.domain.events import Event as BusEvent
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import record
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.firing import Attempt, Cause, Fired, fire_if_admitted
from lamplighter.services.automations.registering import quiet_at
from lamplighter.services.automations.waiting import waiting_events
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs
from lamplighter.services.rules import Rules
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


@record
class _Pass:
    """One transaction of the scheduler, with its report."""

    tx: Tx
    rules: Rules
    ctx: Context
    report: PassReport
    start_grant: StartGrant | None = None


@record
class _Work:
    """One due trigger and its automation within a pass."""

    of: _Pass
    row: AutomationRow
    automation: Automation
    trigger: Trigger

    @property
    def tx(self) -> Tx:
        return self.of.tx

    @property
    def rules(self) -> Rules:
        return self.of.rules

    @property
    def ctx(self) -> Context:
        return self.of.ctx

    @property
    def gate(self) -> Gate:
        return self.trigger.gate


@record
class Peek:
    """What an idle scheduler needs to know: whether there is an unseen event, and when the next trigger is due."""

    unseen: bool
    next_due_at: datetime | None


def peek(tx: Tx, position: int) -> Peek:
    return Peek(tx.events.head() > position, tx.triggers.next_due_at())


def fire_due(tx: Tx, *, limit: int, rules: Rules, ctx: Context, start_grant: StartGrant | None = None) -> PassReport:
    """Look at the triggers that are due, the longest due first, and fire, skip or hold each."""
    report = PassReport()
    due = tx.triggers.due(ctx.now, limit=limit)
    if not due:
        return report
    rows = tx.automations.some(one.automation for one in due)
    this = _Pass(tx, rules, ctx, report, start_grant)
    for trigger in due:
        report.looked_at += 1
        _look(this, rows[trigger.automation], trigger)
    return report


def due_keys(tx: Tx, now: datetime, *, limit: int) -> list[tuple[str, str]]:
    """Which triggers are due, by automation and id."""
    return [(one.automation, one.id) for one in tx.triggers.due(now, limit=limit)]


def fire_alone(tx: Tx, key: tuple[str, str], *, rules: Rules, ctx: Context) -> PassReport:
    """Process one due trigger by itself, so that a trigger that fails does not stop the others of its batch."""
    report = PassReport(looked_at=1)
    row = tx.automations.lock(key[0])
    found = None if row is None else next((one for one in tx.triggers.of(key[0]) if one.id == key[1]), None)
    due_at = None if found is None else found.state.next_due_at
    if row is not None and found is not None and found.armed and due_at is not None and due_at <= ctx.now:
        _look(_Pass(tx, rules, ctx, report), row, found)
    return report


def put_aside(tx: Tx, key: tuple[str, str], error: str, *, ctx: Context) -> None:
    """Put off a trigger whose processing failed by PUT_ASIDE, and emit `automation.error`."""
    row = tx.automations.lock(key[0])
    found = None if row is None else next((one for one in tx.triggers.of(key[0]) if one.id == key[1]), None)
    if row is None or found is None:
        return
    tx.triggers.save_state(replace(found, state=replace(found.state, next_due_at=ctx.now + PUT_ASIDE)))
    tx.events.append(ctx.event("automation.error", subject=row.scoped_name, message=error[:300]))


def fire_checked(tx: Tx, automation: str, trigger: str, result: Checked, *, rules: Rules, ctx: Context) -> PassReport:
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
        tx.triggers.checked(found, told, ctx.now)
    if result.exit_code == 0:
        _look(_Pass(tx, rules, ctx, report), row, found, result)
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


def raise_quiet(tx: Tx, *, limit: int, rules: Rules, ctx: Context) -> list[str]:
    """Emit `automation.quiet` for each automation that has been silent for too long, once for each silence.

    For an automation that is blocked the wait starts again instead.
    """
    raised = []
    for row in tx.automations.quiet(ctx.now, limit=limit):
        automation = snapshots.of_row(row)
        if blocked_by(rules.switches(row)):
            tx.automations.set_quiet(row.id, quiet_at(automation, ctx.now))
            continue
        tx.automations.set_quiet(row.id, None, since=ctx.now)
        last = max((one.state.last_fired_at or row.armed_at for one in tx.triggers.of(row.id)), default=row.armed_at)
        since = rfc3339(max(last, row.armed_at))
        message = f"nothing has fired since {since}"
        tx.events.append(
            ctx.event(
                "automation.quiet",
                subject=row.scoped_name,
                message=message,
                payload={"automation": row.scoped_name, "since": since},
            )
        )
        silent = needs.quiet(replace(row, quiet_at=None, quiet_since=ctx.now))
        if silent is not None:
            needs.open_item(tx, replace(silent, facts={"message": message}), ctx=ctx)
        raised.append(row.scoped_name)
    return raised


def _look(this: _Pass, row: AutomationRow, found: TriggerRow, evidence: Evidence | None = None) -> None:
    tx = this.tx
    try:
        automation = snapshots.of_row(row)
    except ValueError as error:  # written by a newer version of the program: it does not fire here until it can be read
        tx.triggers.disarm(row.id)
        told = this.ctx.event("automation.unreadable", subject=row.scoped_name, message=str(error)[:300])
        tx.events.append(told)
        return
    trigger = automation.trigger(found.id)
    if trigger is None:
        tx.triggers.remove(found)
        return
    tx.triggers.save_state(_report(_Work(this, row, automation, trigger), found, evidence))


def _report(work: _Work, found: TriggerRow, evidence: Evidence | None) -> TriggerRow:
    """Check the trigger's gate and write what follows; returns the trigger's new row, which the caller saves."""
    now, gate = work.ctx.now, work.gate
    timing = work.rules.timing(work.automation, work.trigger.id)
    if isinstance(gate, Event) and barred(work.rules.switches(work.row), Origin.EVENTS) is not None:
        return replace(found, held_by=BLOCKED)  # before the events are read
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
    taken = due.taken.events
    wanted = {event.seq for event in taken}
    events = [event.as_json() for event in raw if event.seq in wanted]
    one = alike(work.trigger.continue_by, events)  # a run for each conversation: the others come after it
    cut = one < len(events)
    cursor, slot = (taken[one - 1].seq, f"seq:{taken[one - 1].seq}") if cut else (due.taken.cursor, due.slot)
    cause = Cause(
        work.trigger.id,
        work.gate.kind,
        f"{due.reason}, {one} of them of one conversation" if cut else due.reason,
        slot=slot,
        key=slot,
        due_at=due.first_at,
        payload={"events": events[:one]},
        causes=due.taken.causes,
    )
    fired = _fire(work, Origin.EVENTS, cause)
    if isinstance(fired, Hold) and fired.until is not None:
        return replace(found, state=replace(found.state, next_due_at=fired.until))  # nor here is an event skipped
    if isinstance(fired, Hold | Skip):
        return replace(found, held_by=fired.run or BLOCKED)  # the cursor stays where it is: no event is skipped
    left = more or cursor < raw[-1].seq
    state = replace(
        found.state, last_fired_at=work.ctx.now, last_slot=slot, event_cursor=cursor,
        next_due_at=work.ctx.now if left else None,
    )  # fmt: skip
    return replace(found, state=state, last_skip=None)


def _fire_slots(work: _Work, found: TriggerRow, due: Due) -> TriggerRow:
    now, gate = work.ctx.now, work.gate
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
    now, gate = work.ctx.now, work.gate
    timing = work.rules.timing(work.automation, work.trigger.id)
    late = f", {round(slot.late.total_seconds())} s late" if slot.late and "late" not in due.reason else ""
    cause = Cause(
        work.trigger.id, gate.kind, due.reason + late, slot=slot.key, key=slot.key, due_at=slot.at,
    )  # fmt: skip
    match _fire(work, Origin.SLOT if first else Origin.LATER_SLOT, cause):
        case Hold() as hold:
            return hold
        case Skip() as skip:
            return _skip(work, _passed(gate, found, now, work), skip, slot)
        case None:
            return _passed(gate, found, now, work)
        case Fired():
            return replace(found, state=after_firing(gate, found.state, slot.key, now, timing), last_skip=None)


def _fire(work: _Work, origin: Origin, cause: Cause) -> Fired | Hold | Skip | None:
    """Fire if admitted, and add the run to the report; None when that slot was fired before."""
    report, start_grant = work.of.report, work.of.start_grant
    if start_grant is not None and len(report.started) >= start_grant.room:
        start_grant = None
    attempt = Attempt(work.row, origin, cause)
    fired = fire_if_admitted(work.tx, attempt, rules=work.rules, ctx=work.ctx, start_grant=start_grant)
    if isinstance(fired, Fired):
        report.fired.append(fired.run)
        if fired.started is not None:
            report.started.append(fired.started)
    return fired


def _passed(gate: Gate, found: TriggerRow, now: datetime, work: _Work) -> TriggerRow:
    timing = work.rules.timing(work.automation, work.trigger.id)
    return replace(found, state=passed_over(gate, found.state, now, timing))


def _missed(work: _Work, found: TriggerRow, missed: Missed) -> TriggerRow:
    slot = Slot("", missed.last_at)
    return _skip(work, found, Skip(SkipReason.MISSED), slot, count=missed.count, first_at=missed.first_at)


def _skip(
    work: _Work, found: TriggerRow, skip: Skip, slot: Slot, *, count: int = 1, first_at: datetime | None = None
) -> TriggerRow:
    """Record a skipped slot; consecutive skips for the same reason share one record with a count and one event."""
    tx, now, reason = work.tx, work.ctx.now, skip.reason
    work.of.report.skipped += count
    if found.last_skip is not None and tx.trigger_events.repeat(found.last_skip, reason.value, now, count=count):
        return found
    event = TriggerEvent(
        id=work.ctx.ids.make("tev"),
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
    if skip.why:
        payload["why"] = skip.why
    told = work.ctx.event(
        "automation.skipped", subject=work.row.scoped_name, message=skip.why or reason.value, payload=payload
    )
    tx.events.append(told)
    return replace(found, last_skip=event.id)


def state_of(row: TriggerRow) -> TriggerState:
    """The state for the gate's rules; for event and condition triggers without `next_due_at`, the scheduler's mark."""
    timed = row.event_key is None and row.kind != "condition"
    return row.state if timed else replace(row.state, next_due_at=None)
