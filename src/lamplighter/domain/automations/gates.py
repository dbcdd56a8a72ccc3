"""Decides whether a trigger is due, from its state, the time and what was observed; each decision has a reason."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.events import SeenEvent, Taken, take
from lamplighter.domain.automations.model import (
    Condition,
    Cooldown,
    Cron,
    Event,
    Gate,
    Manual,
    Schedule,
    Webhook,
)
from lamplighter.domain.automations.state import Timing, TriggerState, next_due, when_of
from lamplighter.kit.clock import SET_BACK_TOLERANCE, rfc3339
from lamplighter.kit.durations import format_duration
from lamplighter.kit.records import record
from lamplighter.kit.schedule import last_run, slot_key


@record
class Checked:
    """How a condition's command ended: its exit code, or None if it exceeded its time limit."""

    exit_code: int | None


@record
class Waiting:
    """Events after the trigger's cursor, in order; events of other types may be missing."""

    events: tuple[SeenEvent, ...]


@record
class NoBus:
    """The events could not be read; `error` says why, empty if there is no events provider."""

    error: str = ""


Evidence = Checked | Waiting | NoBus


@record
class Due:
    """The gate is open. `slot` identifies this firing permanently; `at` is its nominal time, `first_at` the oldest time
    that still waits.
    """

    slot: str
    at: datetime
    first_at: datetime
    reason: str
    taken: Taken | None = None


@record
class NotDue:
    """The gate is closed. `cursor`, if set, is the new event cursor: no event up to it can open this gate."""

    reason: str
    next_due_at: datetime | None = None
    cursor: int | None = None


def check(
    gate: Gate,
    state: TriggerState,
    now: datetime,
    timing: Timing,
    evidence: Evidence | None = None,
    *,
    automation: str = "",
) -> Due | NotDue:
    """Check one gate. `automation` is the scoped name, used to recognise events that the automation caused itself."""
    match gate:
        case Cooldown():
            return _cooldown(gate, state, now)
        case Cron() | Schedule():
            return _timed(gate, state, now, timing)
        case Condition():
            return _condition(gate, state, now, evidence)
        case Event():
            return _event(gate, state, now, evidence, automation)
        case Webhook():
            return NotDue("webhook: waits for a delivery")
        case Manual():
            return NotDue("manual: fires only by `lamp automation run`")


def _cooldown(gate: Cooldown, state: TriggerState, now: datetime) -> Due | NotDue:
    last = state.last_fired_at
    if last is None:
        if state.next_due_at is not None and state.next_due_at > now:
            return NotDue(f"cooldown: {_rounded(state.next_due_at - now)} remaining", state.next_due_at)
        at = state.next_due_at or now
        return Due(rfc3339(at), at, at, "never run")
    if last > now + SET_BACK_TOLERANCE:  # not corrected yet: a controller will, with `clock_set_back`
        due_at = now + gate.interval
        return NotDue(f"cooldown: {_rounded(gate.interval)} remaining, for the clock was set back", due_at)
    due_at = max(last + gate.interval, state.next_due_at or last)
    if now < due_at:
        return NotDue(f"cooldown: {_rounded(due_at - now)} remaining", due_at)
    reason = f"elapsed {_rounded(now - last)} >= interval {format_duration(gate.interval)}"
    return Due(rfc3339(due_at), due_at, due_at, reason)


def _timed(gate: Cron | Schedule, state: TriggerState, now: datetime, timing: Timing) -> Due | NotDue:
    when, zone, kind = when_of(gate), timing.zone, gate.kind
    due_at = state.next_due_at
    if due_at is None:
        return NotDue(f"{kind}: no further time")
    if now < due_at:
        same = state.last_fired_at is not None and _minute(state.last_fired_at) == _minute(now)
        return NotDue(f"{kind}: already run this minute" if same else f"{_schedule(gate)} not matched", due_at)
    first = _nominal(gate, state, due_at, zone)
    last = last_run(now, when, zone, since=first) or first
    slot = slot_key(last, when, zone)
    if slot == state.last_slot:
        return NotDue(f"{kind}: already run this minute", next_due(gate, state, now, timing))
    late = now - last
    told = f", {_rounded(late)} late" if late >= timedelta(minutes=1) else ""
    return Due(slot, last, first, f"{_schedule(gate)} matched{told}")


def _nominal(gate: Cron | Schedule, state: TriggerState, due_at: datetime, zone: ZoneInfo) -> datetime:
    """The nominal time of the slot behind a due time; jitter may have delayed it, but never past the next slot."""
    since = max(state.registered_at, state.last_fired_at or state.registered_at)
    return last_run(due_at, when_of(gate), zone, since=min(since, due_at)) or due_at


def _condition(gate: Condition, state: TriggerState, now: datetime, evidence: Evidence | None) -> Due | NotDue:
    floor = None if gate.interval is None or state.last_fired_at is None else state.last_fired_at + gate.interval
    if floor is not None and floor > now:
        return NotDue(f"condition: {_rounded(floor - now)} until the next check", floor)
    match evidence:
        case Checked(0):
            return Due(rfc3339(now), now, now, "condition: check passed")
        case Checked(None):
            return NotDue(f"condition: check timed out after {format_duration(gate.timeout)}")
        case Checked(code):
            return NotDue(f"condition: check failed with exit code {code}")
        case _:
            return NotDue("condition: not checked yet")


def _event(gate: Event, state: TriggerState, now: datetime, evidence: Evidence | None, automation: str) -> Due | NotDue:
    if not isinstance(evidence, Waiting):
        error = evidence.error if isinstance(evidence, NoBus) else ""
        return NotDue(f"event: cannot read events: {error}" if error else "event: no events provider")
    taken = take(gate, state.event_cursor, evidence.events, automation)
    if not taken.events:
        told = f"; {taken.guarded} of its own making passed over" if taken.guarded else ""
        return NotDue(f"event: no matching {gate.on} events{told}", cursor=taken.cursor)
    count = f"{len(taken.events)} {gate.on} event{'' if len(taken.events) == 1 else 's'}"
    return Due(f"seq:{taken.events[-1].seq}", now, taken.events[0].at, f"event: {count}", taken)


def _schedule(gate: Cron | Schedule) -> str:
    return "cron: schedule" if isinstance(gate, Cron) else "schedule:"


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _rounded(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))
