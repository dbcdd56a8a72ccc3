"""Admission: may an automation fire now? One decision, whatever asks: a schedule, a condition, events, a person."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from lamplighter.domain.automations.decisions import ActiveRun, SkipReason, Switches, blocked_by
from lamplighter.domain.automations.policies import Overlap
from lamplighter.kit.records import record

LOOK_AGAIN = timedelta(minutes=1)
"""How often it is looked whether a person has decided."""


class Origin(StrEnum):
    """What asks the automation to fire. It decides what becomes of a firing that cannot happen now."""

    HAND = "hand"
    """A person or a program that waits for the answer: nothing is kept for later."""
    SLOT = "slot"
    """A time of a schedule, or a condition that passed: skipped, unless the policy says that it waits."""
    LATER_SLOT = "later_slot"
    """A slot behind another one of the same catch-up: it waits, because caught-up slots run one after another."""
    EVENTS = "events"
    """Events wait behind their trigger's cursor, whatever the reason: none is skipped."""
    DELIVERY = "delivery"
    """A delivery waits as events do; one for an automation that is off is skipped, and may be replayed."""


@record
class Fire:
    pass


@record
class Replace:
    """Fire, after ending these runs."""

    runs: tuple[str, ...]


@record
class Hold:
    """Keep it due until `run` ends or, without a run, until what blocks the automation is lifted.

    With `until` it is looked at again at that time. Everything that waited then becomes one run.
    """

    run: str | None = None
    until: datetime | None = None


@record
class Skip:
    """It does not fire. `run` is the run in its way, if the reason is an overlap; `why` says more."""

    reason: SkipReason
    run: str | None = None
    why: str = ""


@record
class UsedUp:
    """A budget of the day leaves nothing for one more run; `until` is when to look again."""

    why: str
    until: datetime


Decision = Fire | Replace | Hold | Skip

_WAITS: Mapping[Overlap, frozenset[Origin]] = {
    Overlap.SKIP: frozenset({Origin.LATER_SLOT, Origin.EVENTS, Origin.DELIVERY}),
    Overlap.REPLACE: frozenset({Origin.LATER_SLOT, Origin.EVENTS, Origin.DELIVERY}),
    Overlap.QUEUE: frozenset({Origin.SLOT, Origin.LATER_SLOT, Origin.EVENTS, Origin.DELIVERY}),
}
"""Which firings wait for the end of a run in their way; the others are skipped. With `replace` only one that a person
has taken is in the way."""
_FIRE = Fire()


def barred(switches: Switches, origin: Origin) -> Hold | Skip | None:
    """What a switch that is off makes of a firing; None if none keeps the automation from firing."""
    reason = blocked_by(switches, by_hand=origin is Origin.HAND)
    if reason is None:
        return None
    off = reason in {SkipReason.DISABLED, SkipReason.LEFT_OUT}
    waits = origin is Origin.EVENTS or (origin is Origin.DELIVERY and not off)
    return Hold() if waits else Skip(reason)


def by_budget(decision: Decision, used_up: UsedUp | None, origin: Origin) -> Decision:
    """The decision after the budgets of the day: events and deliveries wait for the next day, the rest is skipped."""
    if used_up is None or isinstance(decision, Hold | Skip):
        return decision
    if origin in {Origin.EVENTS, Origin.DELIVERY}:
        return Hold(until=used_up.until)
    return Skip(SkipReason.BUDGET, why=used_up.why)


def while_a_person_decides(run: str, origin: Origin, now: datetime) -> Hold | Skip:
    """The last run of the conversation to speak into waits for a person: their question or plan is not taken away."""
    if origin in {Origin.EVENTS, Origin.DELIVERY}:
        return Hold(until=now + LOOK_AGAIN)
    return Skip(SkipReason.OVERLAP, run, "its conversation waits for a person")


def decide(switches: Switches, policy: Overlap, active: Iterable[ActiveRun], origin: Origin, now: datetime) -> Decision:
    """Switches come first, then the overlap policy; `active` are the automation's runs that have not ended.

    A run past its deadline does not count: a run that never ends must not block the automation for ever. One that a
    person has taken has none, and is not replaced.
    """
    refused = barred(switches, origin)
    if refused is not None:
        return refused
    if policy is Overlap.ALLOW:
        return _FIRE
    live = [run for run in active if run.taken or run.deadline_at is None or run.deadline_at > now]
    if not live:
        return _FIRE
    in_the_way = next((run.id for run in live if run.taken), live[0].id)
    if policy is Overlap.REPLACE and not any(run.taken for run in live):
        return Replace(tuple(run.id for run in live))
    return Hold(in_the_way) if origin in _WAITS[policy] else Skip(SkipReason.OVERLAP, in_the_way)
