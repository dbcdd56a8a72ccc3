"""Read-only views of automations: list, gate checks, next firings, explanation and history."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from lamplighter.domain.automations.decisions import ActiveRun, SkipReason, blocked_by
from lamplighter.domain.automations.explain import ClockSetBack, LastRun, LastSkip, Situation, explain
from lamplighter.domain.automations.forecast import Firing, forecast
from lamplighter.domain.automations.gates import Checked, Due, Evidence, NotDue, Waiting, check
from lamplighter.domain.automations.model import Automation, Condition, Event
from lamplighter.domain.automations.shape import to_shape
from lamplighter.domain.automations.state import next_due
from lamplighter.kit.clock import rfc3339
from lamplighter.services import clock_back
from lamplighter.services.automations import snapshots
from lamplighter.services.automations.due import state_of
from lamplighter.services.automations.editing import every, get
from lamplighter.services.automations.waiting import waiting_events
from lamplighter.services.rules import Rules
from lamplighter.store.automations import AutomationRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.triggers import TriggerRow
from lamplighter.store.tx import Tx

Checks = Mapping[tuple[str, str], Checked]
"""How the commands of conditions ended, by scoped name and trigger id."""


@dataclass(frozen=True)
class Verdict:
    """The result of checking one gate."""

    scoped_name: str
    trigger: str
    verdict: Due | NotDue
    last_fired_at: datetime | None
    blocked: SkipReason | None = None

    @property
    def due(self) -> bool:
        return isinstance(self.verdict, Due) and self.blocked is None

    def as_json(self) -> dict[str, Any]:
        reason = self.verdict.reason if self.blocked is None else f"{self.blocked.replace('_', ' ')}: nothing fires"
        at = self.verdict.at if isinstance(self.verdict, Due) else self.verdict.next_due_at
        return {
            "scoped_name": self.scoped_name,
            "trigger": self.trigger,
            "due": self.due,
            "reason": reason,
            "last_fired_at": _time(self.last_fired_at),
            "next_due_at": _time(at),
        }


@dataclass(frozen=True)
class Standing:
    """An automation with its triggers' rows, read together."""

    row: AutomationRow
    triggers: tuple[TriggerRow, ...] = field(default=())

    @property
    def automation(self) -> Automation | None:
        return None if self.row.definition is None else snapshots.of_row(self.row)


def standings(tx: Tx, scoped_name: str | None = None, *, rig: str | None = None) -> list[Standing]:
    """One automation by name, or all of them. Raises AutomationUnknown."""
    rows = every(tx, rig=rig) if scoped_name is None else [get(tx, scoped_name)]
    triggers = tx.triggers.of_some(row.id for row in rows) if rows else {}
    return [Standing(row, tuple(triggers.get(row.id, ()))) for row in rows]


def shape(standing: Standing, rules: Rules) -> dict[str, Any]:
    """The automation as JSON for every surface."""
    row, automation = standing.row, standing.automation
    shown: dict[str, Any] = {
        "name": row.name, "scoped_name": row.scoped_name, "rig": row.rig, "description": "", "action": None,
        "triggers": [], "policies": {}, "timezone": None,
    }  # fmt: skip
    if automation is not None:
        shown = to_shape(automation, rules.zone_of(automation))
        states = {one.id: one for one in standing.triggers}
        shown["triggers"] = [one | _trigger_state(states.get(one["id"])) for one in shown["triggers"]]
    return shown | {
        "id": row.id,
        "enabled": row.enabled,
        "skipped": row.left_out,
        "suspended": row.suspended,
        "source": row.source,
        "path": row.path,
        "disabled_reason": row.disabled_reason or None,
        "failures": row.failures,
        "problems": list(row.problems),
        "created_at": rfc3339(row.created_at),
        "updated_at": rfc3339(row.updated_at),
    }


def conditions(standing: Standing) -> Iterator[tuple[str, Condition]]:
    """Trigger ids and conditions whose commands a caller must run before it calls `verdicts`."""
    for trigger in () if standing.automation is None else standing.automation.triggers:
        if isinstance(trigger.gate, Condition):
            yield trigger.id, trigger.gate


def verdicts(
    tx: Tx, *, now: datetime, rules: Rules, scoped_name: str | None = None, checks: Checks | None = None
) -> list[Verdict]:
    """The current verdict on every gate; that on an unchecked condition says so. Raises AutomationUnknown."""
    found = []
    for standing in standings(tx, scoped_name):
        blocked = blocked_by(rules.switches(standing.row))
        for trigger, verdict in _checked(tx, standing, now, rules, checks or {}).items():
            row = next((one for one in standing.triggers if one.id == trigger), None)
            last = None if row is None else row.state.last_fired_at
            found.append(Verdict(standing.row.scoped_name, trigger, verdict, last, blocked))
    return found


def next_firings(
    tx: Tx, span: tuple[datetime, datetime], *, rules: Rules, limit: int, scoped_name: str | None = None
) -> list[dict[str, Any]]:
    """The first `limit` firings expected in that span, in order; later ones are not computed.

    Raises AutomationUnknown.
    """
    armed = [one for one in standings(tx, scoped_name) if _fires(one.row)]
    automations = [one.automation for one in armed if one.automation is not None]
    states = {(one.row.scoped_name, row.id): state_of(row) for one in armed for row in one.triggers}
    zones = {one.scoped_name: rules.zone_of(one) for one in automations}
    firings = forecast(automations, rules.zone_of, states, span)
    return [_firing(one, zones[one.automation]) for one in islice(firings, limit)]


def _fires(row: AutomationRow) -> bool:
    return row.armed and not row.suspended


def explained(
    tx: Tx, scoped_name: str, *, now: datetime, rules: Rules, checks: Checks | None = None
) -> tuple[str, ...]:
    """Why it did or did not fire, and when it will. Raises AutomationUnknown."""
    standing = standings(tx, scoped_name)[0]
    row, automation = standing.row, standing.automation
    if automation is None:
        return (f"Its file cannot be read, so it fires nothing: {'; '.join(row.problems)}",)
    situation = Situation(
        automation=automation,
        now=now,
        zone=rules.zone_of(automation),
        states={one.id: state_of(one) for one in standing.triggers},
        checks=_checked(tx, standing, now, rules, checks or {}),
        blocked=blocked_by(rules.switches(row)),
        disabled_reason=row.disabled_reason,
        failures=row.failures,
        last_run=_last_run(tx, scoped_name),
        last_skip=_last_skip(tx, scoped_name),
        clock_set_back=_set_back(tx, now),
        active=tuple(ActiveRun(run, at) for run, at in tx.runs.active_of(row.id)),
    )
    return explain(situation)


def _set_back(tx: Tx, now: datetime) -> ClockSetBack | None:
    found = clock_back.told(tx, now)
    return None if found is None else ClockSetBack(clock_back.spoken(found.by), found.at)


def history(tx: Tx, scoped_name: str, *, before: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
    """The automation's trigger events, newest first, also after its deletion.

    Raises AutomationUnknown when there is neither an event nor an automation of that name.
    """
    found = tx.trigger_events.history(scoped_name, before=before, limit=limit)
    if not found and before is None:
        get(tx, scoped_name)
    states = tx.runs.states(one.run for one in found if one.run is not None)
    return [_event(one, states[one.run][0].value if one.run in states else None) for one in found]


def _checked(tx: Tx, standing: Standing, now: datetime, rules: Rules, checks: Checks) -> dict[str, Due | NotDue]:
    automation = standing.automation
    if automation is None:
        return {}
    found: dict[str, Due | NotDue] = {}
    rows = {one.id: one for one in standing.triggers}
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


def _trigger_state(row: TriggerRow | None) -> dict[str, Any]:
    if row is None:
        return {"next_due_at": None, "last_fired_at": None, "last_slot": None}
    state = state_of(row)
    return {
        "next_due_at": _time(state.next_due_at),
        "last_fired_at": _time(state.last_fired_at),
        "last_slot": state.last_slot,
        "event_cursor": state.event_cursor if row.event_key is not None else None,
        "held_by": row.held_by,
        "checked_at": _time(row.checked_at),
        "check_result": row.check_result,
    }


def _last_run(tx: Tx, scoped_name: str) -> LastRun | None:
    runs = tx.runs.page(automation=scoped_name, limit=1)
    if not runs:
        return None
    run = runs[0].run
    return LastRun(run.id, run.state.value, run.started_at or run.created_at, run.reason)


def _last_skip(tx: Tx, scoped_name: str) -> LastSkip | None:
    skip = tx.trigger_events.last_skip(scoped_name)
    if skip is None or skip.reason not in set(SkipReason):
        return None
    return LastSkip(skip.last_at, SkipReason(skip.reason), skip.count)


def _firing(firing: Firing, zone: Any) -> dict[str, Any]:
    local = firing.at.astimezone(zone)
    return {
        "scoped_name": firing.automation,
        "trigger": firing.trigger,
        "at": rfc3339(firing.at),
        "local": local.isoformat(timespec="seconds"),
        "zone": zone.key,
    }


def _event(event: TriggerEvent, run_state: str | None) -> dict[str, Any]:
    return {
        "id": event.id,
        "automation": event.automation,
        "trigger": event.trigger,
        "kind": event.kind,
        "status": event.status,
        "reason": event.reason or None,
        "slot": event.slot,
        "due_at": _time(event.due_at),
        "count": event.count,
        "first_at": rfc3339(event.first_at),
        "last_at": rfc3339(event.last_at),
        "run": event.run,
        "run_state": run_state,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
