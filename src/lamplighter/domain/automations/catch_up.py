"""Slots that passed while nothing could fire: which of them still run late, and which are only recorded as missed."""

from datetime import datetime, timedelta

from lamplighter.domain.automations.gates import Due
from lamplighter.domain.automations.model import Cron, Gate, Schedule
from lamplighter.domain.automations.policies import CatchUp, CatchUpMode
from lamplighter.domain.automations.state import Timing, when_of
from lamplighter.kit.records import record
from lamplighter.kit.schedule import count_runs, last_run, slot_key

PUNCTUAL = timedelta(minutes=1)

_INSTANT = timedelta(microseconds=1)


@record
class Slot:
    """One slot to fire; `late` is zero if it is on time."""

    key: str
    at: datetime
    late: timedelta = timedelta(0)


@record
class Missed:
    """Consecutive slots that will not run, stored as one record."""

    first_at: datetime
    last_at: datetime
    count: int


@record
class Plan:
    fire: tuple[Slot, ...]
    missed: Missed | None = None


def plan(policy: CatchUp, gate: Gate, due: Due, now: datetime, timing: Timing) -> Plan:
    """The slots to fire, oldest first, and those missed. Gates without a schedule (cooldown, condition, event) have
    only the one due slot and never miss any.
    """
    if not isinstance(gate, Cron | Schedule):
        return Plan((Slot(due.slot, due.at),))
    fire = _late_slots(policy, gate, due, now, timing)
    last_missed = due.at if not fire else _before(gate, fire[0].at, due.first_at, timing)
    if last_missed is None:
        return Plan(fire)
    count = count_runs(due.first_at - _INSTANT, when_of(gate), timing.zone, last_missed)
    return Plan(fire, Missed(due.first_at, last_missed, count))


def _late_slots(policy: CatchUp, gate: Cron | Schedule, due: Due, now: datetime, timing: Timing) -> tuple[Slot, ...]:
    limit = policy.limit if policy.mode is CatchUpMode.ALL else 1
    punctual = PUNCTUAL + timing.jitter
    patience = punctual if policy.mode is CatchUpMode.SKIP else max(policy.within, punctual)
    slots: list[Slot] = []
    at: datetime | None = due.at
    while at is not None and len(slots) < limit and now - at <= patience:
        late = now - at if now - at > punctual else timedelta(0)
        slots.append(Slot(slot_key(at, when_of(gate), timing.zone), at, late))
        at = _before(gate, at, due.first_at, timing)
    return tuple(reversed(slots))


def _before(gate: Cron | Schedule, at: datetime, first: datetime, timing: Timing) -> datetime | None:
    return last_run(at - _INSTANT, when_of(gate), timing.zone, since=first)
