"""The state a trigger keeps between firings, and how firings, edits and clock changes alter it."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

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
from lamplighter.kit.records import record
from lamplighter.kit.schedule import When, next_run, slot_key


@record
class Timing:
    """A trigger's time zone, and how far jitter spreads its due times; `key` gives each trigger its own jitter."""

    zone: ZoneInfo
    jitter: timedelta = timedelta(0)
    key: str = ""


@record
class Timed:
    gate: Gate
    timing: Timing


@record
class TriggerState:
    """`next_due_at` is None for a trigger without a time to wait for; `event_cursor` is the last event it handled."""

    registered_at: datetime
    next_due_at: datetime | None = None
    last_fired_at: datetime | None = None
    last_slot: str | None = None
    event_cursor: int = 0


def registered(gate: Gate, now: datetime, timing: Timing, *, head: int = 0) -> TriggerState:
    """The state of a new trigger: a schedule waits for its next time, an event trigger starts at the end of the log."""
    state = TriggerState(now, event_cursor=head)
    return replace(state, next_due_at=next_due(gate, state, now, timing))


def next_due(gate: Gate, state: TriggerState, after: datetime, timing: Timing) -> datetime | None:
    """When to check the gate next, None for never by time.

    At once for a cooldown or condition that never fired, and for a condition without an interval.
    """
    match gate:
        case Cooldown(interval):
            return after if state.last_fired_at is None else state.last_fired_at + interval
        case Cron() | Schedule():
            return jittered(gate, next_run(after, when_of(gate), timing.zone), timing)
        case Condition(_, interval):
            return after if interval is None or state.last_fired_at is None else state.last_fired_at + interval
        case Event() | Webhook() | Manual():
            return None


def after_firing(
    gate: Gate, state: TriggerState, slot: str, now: datetime, timing: Timing, *, cursor: int | None = None
) -> TriggerState:
    """The state after a firing, saved in the firing's own transaction. A run started by hand does not change it."""
    fired = replace(state, last_fired_at=now, last_slot=slot, event_cursor=cursor or state.event_cursor)
    return replace(fired, next_due_at=next_due(gate, fired, now, timing))


def passed_over(gate: Gate, state: TriggerState, now: datetime, timing: Timing) -> TriggerState:
    """The state after slots were skipped or missed: the next due time advances, but nothing counts as fired."""
    if isinstance(gate, Cooldown) and state.last_fired_at is not None:
        waited = now - state.last_fired_at
        return replace(state, next_due_at=state.last_fired_at + gate.interval * (waited // gate.interval + 1))
    if isinstance(gate, Cooldown):
        return replace(state, next_due_at=now + gate.interval)
    return replace(state, next_due_at=next_due(gate, state, now, timing))


def clock_set_back(gate: Gate, state: TriggerState, by: timedelta, now: datetime, timing: Timing) -> TriggerState:
    """The state with its times moved to the new clock, which was set back by `by`.

    A wait keeps its elapsed time; a schedule waits for its next time. A slot that comes a second time is not fired
    again, because its key is recorded.
    """
    last = None if state.last_fired_at is None else state.last_fired_at - by
    moved = replace(state, registered_at=min(state.registered_at, now), last_fired_at=last)
    if isinstance(gate, Cron | Schedule):
        return replace(moved, next_due_at=next_due(gate, moved, now, timing))
    if isinstance(gate, Cooldown | Condition):
        return replace(moved, next_due_at=None if state.next_due_at is None else state.next_due_at - by)
    return replace(moved, next_due_at=None if state.next_due_at is None else min(state.next_due_at, now))


def after_edit(old: Timed | None, new: Timed, state: TriggerState | None, now: datetime, *, head: int) -> TriggerState:
    """An unchanged trigger keeps its state, one with a changed schedule gets a new due time; a new trigger, or one of
    another kind, starts from the beginning.
    """
    if old is None or state is None or old.gate.kind is not new.gate.kind:
        return registered(new.gate, now, new.timing, head=head)
    if old == new:
        return state
    return replace(state, next_due_at=next_due(new.gate, state, now, new.timing))


def jittered(gate: Cron | Schedule, at: datetime | None, timing: Timing) -> datetime | None:
    """The slot's time plus its jitter: the same on every machine, and at most half the time to the next slot."""
    if at is None or not timing.jitter:
        return at
    when = when_of(gate)
    following = next_run(at, when, timing.zone)
    most = timing.jitter if following is None else min(timing.jitter, (following - at) / 2)
    return at + most * chance(f"{timing.key}/{slot_key(at, when, timing.zone)}")


def chance(text: str) -> float:
    """A number in [0, 1) determined only by the text."""
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48


def when_of(gate: Cron | Schedule) -> When:
    return gate.expression if isinstance(gate, Cron) else gate.when
