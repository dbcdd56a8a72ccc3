"""Read-only views of automations: list, gate checks, next firings, explanation and history."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.decisions import SkipReason, blocked_by
from lamplighter.domain.automations.events import loops, unmatched
from lamplighter.domain.automations.explain import ClockSetBack, LastRun, LastSkip, PassedOver, Situation, explain
from lamplighter.domain.automations.forecast import Firing, forecast
from lamplighter.domain.automations.gates import Checked, Due, Evidence, NotDue, Waiting, check
from lamplighter.domain.automations.model import Automation, Condition, Event, TriggerKind, deadline, time_limit
from lamplighter.domain.automations.shape import to_shape
from lamplighter.domain.automations.state import next_due
from lamplighter.domain.city.show import covered
from lamplighter.domain.events import EventFilter
from lamplighter.domain.runs.model import RunState, said
from lamplighter.kit.durations import format_duration
from lamplighter.kit.records import record
from lamplighter.services import clock_back
from lamplighter.services.automations import references, snapshots
from lamplighter.services.automations.due import state_of
from lamplighter.services.automations.editing import get, pages
from lamplighter.services.automations.views import (
    AutomationTriggerView,
    AutomationView,
    FiringView,
    LastRunView,
    LimitsView,
    TriggerEventView,
    VerdictView,
)
from lamplighter.services.automations.waiting import newest_seen, waiting_events
from lamplighter.services.context import Context
from lamplighter.services.rules import Rules
from lamplighter.services.runs import budgets
from lamplighter.services.runs.views import waits_for
from lamplighter.store.automations import AutomationRow
from lamplighter.store.run_rows import LastRun as LastOf
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import TriggerRow
from lamplighter.store.tx import Tx

Checks = Mapping[tuple[str, str], Checked]
"""How the commands of conditions ended, by scoped name and trigger id."""
_TIMED = frozenset({TriggerKind.COOLDOWN.value, TriggerKind.CRON.value, TriggerKind.SCHEDULE.value})
_JITTER = timedelta(days=1)
_BESIDE_THE_GATE = frozenset({"id", "kind", "human_schedule", "badge"})


@record
class Verdict:
    """The result of checking one gate."""

    scoped_name: str
    trigger: str
    verdict: Due | NotDue
    last_fired_at: datetime | None
    now: datetime
    blocked: SkipReason | None = None

    @property
    def due(self) -> bool:
        return isinstance(self.verdict, Due) and self.blocked is None

    def view(self) -> VerdictView:
        reason = self.verdict.reason if self.blocked is None else f"{self.blocked.replace('_', ' ')}: nothing fires"
        return VerdictView(self.scoped_name, self.trigger, self.due, reason, self.last_fired_at, self._next())

    def _next(self) -> datetime | None:
        """Never in the past: what is due already fires now, and what is blocked at no time that is known."""
        if self.blocked is not None:
            return None
        at = self.verdict.at if isinstance(self.verdict, Due) else self.verdict.next_due_at
        return None if at is None else max(at, self.now)


@record
class Asked:
    """A condition of an automation, whose command is to be run."""

    row: AutomationRow
    trigger: str
    gate: Condition


@record
class Standing:
    """An automation with its triggers' rows, read together."""

    row: AutomationRow
    triggers: tuple[TriggerRow, ...] = field(default=())

    @property
    def automation(self) -> Automation | None:
        return None if self.row.definition is None else snapshots.of_row(self.row)


def standings(tx: Tx, scoped_name: str | None = None, rig: str | None = None) -> Iterator[Standing]:
    """One automation by name, or all of them or of a rig, read page by page. Raises AutomationUnknown."""
    if scoped_name is not None:
        yield standing(tx, scoped_name)
        return
    for rows in pages(tx, rig):
        yield from with_triggers(tx, rows)


def standing(tx: Tx, scoped_name: str) -> Standing:
    """Raises AutomationUnknown."""
    (found,) = with_triggers(tx, [get(tx, scoped_name)])
    return found


def with_triggers(tx: Tx, rows: Sequence[AutomationRow]) -> list[Standing]:
    triggers = tx.triggers.of_some(row.id for row in rows) if rows else {}
    return [Standing(row, tuple(triggers.get(row.id, ()))) for row in rows]


def shown(tx: Tx, found: Sequence[Standing], ctx: Context) -> list[AutomationView]:
    """The automations as every surface shows them."""
    rows = [one.row for one in found]
    last = tx.runs.last_of(row.id for row in rows) if rows else {}
    warned = references.warnings(tx, rows, ctx) if rows else {}
    return [
        _shape(one, ctx.rules, last.get(one.row.scoped_name), warned.get(one.row.id, ())) for one in found
    ]  # fmt: skip


def _shape(found: Standing, rules: Rules, last: LastOf | None, warnings: Sequence[str]) -> AutomationView:
    row, automation = found.row, found.automation
    shown: dict[str, Any] = {}
    if automation is not None:
        shown = to_shape(automation, rules.zone_of(automation), of_city=rules.zone)
        shown["policies"]["env"] = covered("env", shown["policies"]["env"])
    states = {one.id: one for one in found.triggers}
    return AutomationView(
        name=row.name,
        scoped_name=row.scoped_name,
        rig=row.rig,
        description=shown.get("description", ""),
        owner=shown.get("owner") or None,
        tags=list(shown.get("tags", ())),
        enabled=row.enabled,
        timezone=shown.get("timezone"),
        source=row.source,
        path=row.path,
        action=shown.get("action"),
        triggers=[_trigger(one, states.get(one["id"])) for one in shown.get("triggers", ())],
        policies=shown.get("policies", {}),
        problems=list(row.problems),
        id=row.id,
        skipped=row.left_out,
        suspended=row.suspended,
        disabled_reason=row.disabled_reason or None,
        failures=row.failures,
        warnings=list(warnings),
        limits=None if automation is None else _limits(automation, rules),
        last_run=None if last is None else _last_view(last),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _limits(automation: Automation, rules: Rules) -> LimitsView:
    """Of several triggers the one with the longest deadline counts."""
    timeout = time_limit(automation, rules.cap)
    longest = max(deadline(automation, one.gate.kind, rules.deadline) for one in automation.triggers)
    return LimitsView(None if timeout is None else format_duration(timeout), format_duration(longest))


def _last_view(last: LastOf) -> LastRunView:
    return LastRunView(last.id, last.state.value, last.reason or None, last.started_at, last.ended_at)


def conditions(tx: Tx, scoped_name: str | None = None, rig: str | None = None) -> list[Asked]:
    """The conditions whose commands a caller must run before it calls `verdicts`. Raises AutomationUnknown."""
    return [
        Asked(one.row, trigger.id, trigger.gate)
        for one in standings(tx, scoped_name, rig)
        for trigger in (() if one.automation is None else one.automation.triggers)
        if isinstance(trigger.gate, Condition)
    ]


def verdicts(
    tx: Tx,
    *,
    now: datetime,
    rules: Rules,
    scoped_name: str | None = None,
    rig: str | None = None,
    checks: Checks | None = None,
) -> list[Verdict]:
    """The current verdict on every gate; that on an unchecked condition says so. Raises AutomationUnknown."""
    found = []
    for one in standings(tx, scoped_name, rig):
        blocked = blocked_by(rules.switches(one.row))
        rows = {row.id: row for row in one.triggers}
        for trigger, verdict in _checked(tx, one, now, rules, checks or {}).items():
            last = rows[trigger].state.last_fired_at
            found.append(Verdict(one.row.scoped_name, trigger, verdict, last, now, blocked))
    return found


def next_firings(
    found: Iterable[Standing],
    span: tuple[datetime, datetime],
    *,
    rules: Rules,
    limit: int,
    each: int | None = None,
) -> list[FiringView]:
    """The first `limit` firings expected in that span, in order; later ones are not computed.

    `each` bounds the firings of one automation, so that one that fires often hides no other.
    """
    armed = [one for one in found if _fires(one.row) and _may_come_by(one, span[1])]
    automations = [one.automation for one in armed if one.automation is not None]
    states = {(one.row.scoped_name, row.id): state_of(row) for one in armed for row in one.triggers}
    zones = {one.scoped_name: rules.zone_of(one) for one in automations}
    if each is None:
        firings = forecast(automations, rules.zone_of, states, span)
    else:
        apart = [islice(forecast([one], rules.zone_of, states, span), each) for one in automations]
        firings = merge(*apart, key=lambda one: one.at)
    return [firing_view(one, zones[one.automation]) for one in islice(firings, limit)]


def _fires(row: AutomationRow) -> bool:
    return row.armed and not row.suspended


def _may_come_by(found: Standing, end: datetime) -> bool:
    """Whether one of its times may lie before `end`; if not, its definition, which takes long, need not be read.

    A time on record includes the jitter, which moves it by less than a day.
    """
    if not found.triggers:
        return True
    times = [row.state.next_due_at for row in found.triggers if row.kind in _TIMED]
    return any(at is None or at <= end + _JITTER for at in times)


def explained(
    tx: Tx, scoped_name: str, *, now: datetime, rules: Rules, checks: Checks | None = None
) -> tuple[str, ...]:
    """Why it did or did not fire, and when it will. Raises AutomationUnknown."""
    found = standing(tx, scoped_name)
    row, automation = found.row, found.automation
    if automation is None:
        return (f"Its file cannot be read, so it fires nothing: {'; '.join(row.problems)}",)
    active = tuple(tx.runs.active_of(row.id))
    waiting = tx.runs.get(active[0].id) if active else None
    used_up = budgets.left_for(tx, row.id, automation, rules, now)
    situation = Situation(
        automation=automation,
        now=now,
        zone=rules.zone_of(automation),
        states={one.id: state_of(one) for one in found.triggers},
        checks=_checked(tx, found, now, rules, checks or {}),
        blocked=blocked_by(rules.switches(row)),
        disabled_reason=row.disabled_reason,
        failures=row.failures,
        last_run=_last_run(tx, scoped_name),
        last_skip=_last_skip(tx, scoped_name),
        clock_set_back=_set_back(tx, now),
        passed_over=_passed_over(tx, automation),
        active=active,
        waits_for="" if waiting is None else waits_for(waiting) or "",
        used_up="" if used_up is None else used_up.why,
    )
    return explain(situation)


def _passed_over(tx: Tx, automation: Automation) -> dict[str, PassedOver]:
    """For each event trigger the newest event of its type, if that one could not open it."""
    found = {}
    for trigger in automation.triggers:
        if not isinstance(trigger.gate, Event):
            continue
        kind = None if trigger.gate.on == "*" else trigger.gate.on
        for event in newest_seen(tx, EventFilter(type=kind)):
            why = unmatched(trigger.gate.match, event.payload)
            if not why and loops(event, automation.scoped_name):
                why = "it follows from a run of this automation, or from a chain of runs that is too long"
            if why:
                found[trigger.id] = PassedOver(event.seq, event.type, event.at, why)
    return found


def _set_back(tx: Tx, now: datetime) -> ClockSetBack | None:
    found = clock_back.told(tx, now)
    return None if found is None else ClockSetBack(clock_back.spoken(found.by), found.at)


def history(tx: Tx, scoped_name: str, *, before: str | None = None, limit: int = 50) -> list[TriggerEventView]:
    """The automation's trigger events, newest first, also after its deletion.

    Raises AutomationUnknown when there is neither an event nor an automation of that name.
    """
    found = tx.trigger_events.history(scoped_name, before=before, limit=limit)
    if not found and before is None:
        get(tx, scoped_name)
    states = tx.runs.states(one.run for one in found if one.run is not None)
    return [_event(one, states[one.run][0] if one.run in states else None) for one in found]


def _checked(tx: Tx, one: Standing, now: datetime, rules: Rules, checks: Checks) -> dict[str, Due | NotDue]:
    automation = one.automation
    if automation is None:
        return {}
    found: dict[str, Due | NotDue] = {}
    rows = {row.id: row for row in one.triggers}
    for trigger in automation.triggers:
        row = rows.get(trigger.id)
        if row is None:
            continue
        evidence: Evidence | None = checks.get((automation.scoped_name, trigger.id))
        if isinstance(trigger.gate, Event):
            evidence = Waiting(waiting_events(tx, trigger.gate, row.state.event_cursor)[0])
        timing = rules.timing(automation, trigger.id)
        verdict = check(
            trigger.gate, state_of(row), now, timing, evidence, automation=automation.scoped_name
        )  # fmt: skip
        if isinstance(verdict, NotDue) and verdict.next_due_at is None and isinstance(trigger.gate, Condition):
            verdict = replace(verdict, next_due_at=next_due(trigger.gate, row.state, now, timing))
        found[trigger.id] = verdict
    return found


def _trigger(shown: Mapping[str, Any], row: TriggerRow | None) -> AutomationTriggerView:
    state = None if row is None else state_of(row)
    return AutomationTriggerView(
        id=shown["id"],
        kind=shown["kind"],
        gate={key: one for key, one in shown.items() if key not in _BESIDE_THE_GATE},
        human_schedule=shown["human_schedule"],
        badge=shown["badge"],
        next_due_at=None if state is None else state.next_due_at,
        last_fired_at=None if state is None else state.last_fired_at,
        last_slot=None if state is None else state.last_slot,
        event_cursor=None if state is None or row is None or row.event_key is None else state.event_cursor,
        held_by=None if row is None else row.held_by,
        checked_at=None if row is None else row.checked_at,
        check_result=None if row is None else row.check_result,
    )


def _last_run(tx: Tx, scoped_name: str) -> LastRun | None:
    runs = tx.runs.page(automation=scoped_name, limit=1)
    if not runs:
        return None
    run = runs[0]
    return LastRun(run.id, said(run.state), run.started_at or run.created_at, run.reason)


def _last_skip(tx: Tx, scoped_name: str) -> LastSkip | None:
    skip = tx.trigger_events.last_skip(scoped_name)
    if skip is None or skip.reason not in set(SkipReason):
        return None
    return LastSkip(skip.last_at, SkipReason(skip.reason), skip.count)


def firing_view(firing: Firing, zone: ZoneInfo) -> FiringView:
    local = firing.at.astimezone(zone).isoformat(timespec="seconds")
    return FiringView(firing.automation, firing.trigger, firing.at, local, zone.key)


FIRED, PROCESSING = "fired", "processing"


def _event(event: TriggerEvent, run_state: RunState | None) -> TriggerEventView:
    """A trigger event is `fired` until its run works, then `processing`; the end of the run settles it."""
    works = event.status == FIRED and run_state is RunState.RUNNING
    return TriggerEventView(
        id=event.id,
        automation=event.automation,
        trigger=event.trigger,
        kind=event.kind,
        status=PROCESSING if works else event.status,
        reason=event.reason or None,
        slot=event.slot,
        due_at=event.due_at,
        count=event.count,
        first_at=event.first_at,
        last_at=event.last_at,
        run=event.run,
        run_state=None if run_state is None else run_state.value,
    )
