"""Explains why an automation did or did not fire, and when it will, in sentences made from what is recorded."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.decisions import ActiveRun, SkipReason
from lamplighter.domain.automations.gates import Due, NotDue
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.policies import Overlap
from lamplighter.domain.automations.spoken_reasons import PLAIN, said
from lamplighter.domain.automations.state import TriggerState
from lamplighter.domain.automations.words import human_gate
from lamplighter.kit.durations import spoken
from lamplighter.kit.records import record
from lamplighter.kit.schedule import zone_name

_SECOND = timedelta(seconds=1)
_BLOCKED = {
    SkipReason.DISABLED: "It is disabled and fires nothing until it is enabled.",
    SkipReason.LEFT_OUT: "It is in the city's `skip` list and fires nothing while it stands there.",
    SkipReason.PAUSED: "The city is paused: nothing fires until `lamp resume`.",
    SkipReason.CITY_SUSPENDED: "The city is suspended: nothing fires until `lamp resume`.",
    SkipReason.RIG_SUSPENDED: "Its rig is suspended: nothing fires until the rig is resumed.",
    SkipReason.AUTOMATION_SUSPENDED: "It is suspended and fires nothing until `lamp automation resume`.",
}
_SKIPPED = {
    SkipReason.OVERLAP: "an earlier run was still under way",
    SkipReason.MISSED: "nothing could fire at its time and it was too late afterwards",
    SkipReason.NOTHING_TO_DO: "its precheck found nothing to do",
    SkipReason.PROJECT_MISSING: "its directory was not there",
    SkipReason.BUDGET: "a budget of the day was used up",
}


@record
class LastRun:
    """`said` is its state in a sentence, such as `has failed`."""

    id: str
    said: str
    at: datetime
    reason: str = ""


@record
class LastSkip:
    at: datetime
    reason: SkipReason
    count: int = 1


@record
class PassedOver:
    """The newest event of a trigger's type, which came and did not open its gate."""

    seq: int
    type: str
    at: datetime
    why: str


@record
class ClockSetBack:
    """`at` is None as long as no controller has noticed it."""

    by: str
    at: datetime | None


@record
class Situation:
    """What is recorded about one automation; `checks` are the current results of its gates, by trigger id."""

    automation: Automation
    now: datetime
    zone: ZoneInfo
    states: Mapping[str, TriggerState] = field(default_factory=dict)
    checks: Mapping[str, Due | NotDue] = field(default_factory=dict)
    blocked: SkipReason | None = None
    disabled_reason: str = ""
    failures: int = 0
    last_run: LastRun | None = None
    last_skip: LastSkip | None = None
    active: tuple[ActiveRun, ...] = ()
    waits_for: str = ""
    """What the first of them waits for before it can start."""
    used_up: str = ""
    """The budget of the day that leaves nothing for one more run."""
    clock_set_back: ClockSetBack | None = None
    passed_over: Mapping[str, PassedOver] = field(default_factory=dict)


def explain(situation: Situation) -> tuple[str, ...]:
    """The sentences, most important first: what holds it back, then each trigger, then what happened last."""
    return (
        *_standing(situation),
        *_clock(situation),
        *_triggers(situation),
        *_history(situation),
    )


def _standing(situation: Situation) -> Iterator[str]:
    if situation.blocked is not None:
        yield _BLOCKED.get(situation.blocked, f"It is held back: {situation.blocked}.")
    if situation.disabled_reason:
        yield f"It was disabled because {situation.disabled_reason}."
    if situation.used_up:
        yield f"Nothing fires until midnight in the city's zone: {situation.used_up}"
    if situation.active:
        run = situation.active[0].id
        if situation.waits_for:
            yield f"Run {run} waits: {situation.waits_for}"
        yield _overlapping(situation, run)


def _overlapping(situation: Situation, run: str) -> str:
    taken = next((one.id for one in situation.active if one.taken), None)
    match situation.automation.policies.overlap:
        case Overlap.SKIP:
            return f"Run {run} is under way; a time that comes meanwhile is skipped (overlap = skip)."
        case Overlap.QUEUE:
            return f"Run {run} is under way; what comes meanwhile waits for its end (overlap = queue)."
        case Overlap.ALLOW:
            return f"Run {run} is under way; the next one starts beside it (overlap = allow)."
        case Overlap.REPLACE if taken is not None:
            return f"A person has taken run {taken}, which is not replaced: a time that comes meanwhile is skipped."
        case Overlap.REPLACE:
            return f"Run {run} is under way; the next one replaces it (overlap = replace)."


def _clock(situation: Situation) -> Iterator[str]:
    back = situation.clock_set_back
    if back is None:
        return
    if back.at is None:
        yield (
            f"The clock was set back by {back.by}: times on record lie ahead of it. "
            "A running city counts its waits anew from now."
        )
    else:
        yield (
            f"The clock was set back by {back.by}, noticed at {_time(back.at, situation.zone)}: waits went on where "
            "they were, and no time that had fired fires again."
        )


def _triggers(situation: Situation) -> Iterator[str]:
    for trigger in situation.automation.triggers:
        told = f"Trigger `{trigger.id}` ({human_gate(trigger.gate, situation.zone)})"
        match situation.checks.get(trigger.id):
            case Due(reason=reason):
                held = ", but it is held back" if situation.blocked else ""
                yield f"{told} is due{held}: {said(reason)}."
            case NotDue(reason=reason, next_due_at=at):
                yield f"{told} is not due{_why_not(reason, at)}.{_next(at, situation)}"
                yield from _passed_over(trigger.id, situation)
            case None:
                state = situation.states.get(trigger.id)
                yield f"{told} has not been looked at yet.{_next(state.next_due_at if state else None, situation)}"


def _passed_over(trigger: str, situation: Situation) -> Iterator[str]:
    event = situation.passed_over.get(trigger)
    if event is not None:
        at = _time(event.at, situation.zone)
        yield f"The last {event.type} event (seq {event.seq}, {at}) came and did not open it: {event.why}."


def _why_not(reason: str, at: datetime | None) -> str:
    """Nothing where it is told when it comes next, and nothing else is to be said."""
    words = said(reason)
    waits = words in PLAIN or words.endswith(" remain")
    return "" if waits and at is not None else f": {words}"


def _next(at: datetime | None, situation: Situation) -> str:
    if at is None:
        return ""
    away = at - situation.now
    soon = f", in {spoken(away - away % _SECOND)}" if away >= _SECOND else ""
    return f" It comes next at {_time(at, situation.zone)}{soon}."


def _history(situation: Situation) -> Iterator[str]:
    run, skip = situation.last_run, situation.last_skip
    if run is None:
        yield "It has not run yet."
    else:
        reason = (run.reason or "").replace("_", " ")
        why = f" ({reason})" if reason and not run.said.endswith(reason) else ""
        yield f"It last ran at {_time(run.at, situation.zone)}: run {run.id} {run.said}{why}."
    if skip is not None and (run is None or skip.at > run.at):
        times = f", {skip.count} times" if skip.count > 1 else ""
        why = _SKIPPED.get(skip.reason) or skip.reason.replace("_", " ")
        yield f"It last passed over a time at {_time(skip.at, situation.zone)}{times}: {why}."
    limit = situation.automation.policies.auto_disable_after
    if situation.failures and limit:
        often = "once" if situation.failures == 1 else f"{situation.failures} times in a row"
        yield f"It has failed {often}; at {limit} it is disabled."


def _time(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S} {zone_name(zone)}"
