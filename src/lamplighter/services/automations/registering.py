"""Writing an automation's row together with its triggers' rows, after an edit, a switch or a new definition."""

from dataclasses import replace
from datetime import datetime

from lamplighter.domain.automations.decisions import failures_after_edit
from lamplighter.domain.automations.model import Automation, Condition, Cron, Event, Gate, Schedule, Trigger, Webhook
from lamplighter.domain.automations.policies import Overlap
from lamplighter.domain.automations.state import Timed, TriggerState, after_edit, next_due
from lamplighter.services.automations import snapshots
from lamplighter.services.rules import Rules
from lamplighter.store.automations import AutomationRow
from lamplighter.store.triggers import TriggerRow, hook_key
from lamplighter.store.tx import Tx

TOPIC = "automations"


def new_row(automation: Automation, row_id: str, *, by: str, now: datetime, left_out: bool = False) -> AutomationRow:
    return AutomationRow(
        id=row_id,
        scoped_name=automation.scoped_name,
        name=automation.name,
        rig=automation.rig,
        source=automation.source,
        path=automation.path,
        definition=snapshots.written(automation),
        problems=(),
        version=1,
        enabled=automation.enabled,
        left_out=left_out,
        suspended=False,
        disabled_reason="",
        failures=0,
        armed_at=now,
        quiet_at=quiet_at(automation, now) if automation.enabled and not left_out else None,
        created_at=now,
        created_by=by,
        updated_at=now,
    )


def edited_row(row: AutomationRow, automation: Automation, now: datetime, *, left_out: bool = False) -> AutomationRow:
    """The row with a new definition. An automation that was disabled here stays disabled, unless the new definition
    switches `enabled` from false to true.
    """
    before = None if row.definition is None else snapshots.of_row(row)
    enabled = automation.enabled and not row.disabled_reason
    if before is not None and automation.enabled and not before.enabled:
        enabled = True  # the definition itself was switched on
    failures = failures_after_edit(row.failures, was_enabled=row.enabled, is_enabled=enabled)
    changed = replace(
        row,
        name=automation.name,
        scoped_name=automation.scoped_name,
        rig=automation.rig,
        source=automation.source,
        path=automation.path,
        definition=snapshots.written(automation),
        problems=(),
        enabled=enabled,
        left_out=left_out,
        disabled_reason="" if enabled else row.disabled_reason,
        failures=failures,
        updated_at=now,
    )
    return rearmed(row, changed, automation, now)


def rearmed(before: AutomationRow, after: AutomationRow, automation: Automation | None, now: datetime) -> AutomationRow:
    """Restart the `quiet_after` wait when the automation is armed or redefined; stop it while it is not armed."""
    if automation is None or not after.armed:
        return replace(after, quiet_at=None)
    if before.armed:
        fresh = before.definition != after.definition
        return replace(after, quiet_at=quiet_at(automation, now)) if fresh else after
    return replace(after, armed_at=now, quiet_at=quiet_at(automation, now))


def save(tx: Tx, before: AutomationRow | None, after: AutomationRow, rules: Rules, now: datetime) -> None:
    """Write the row and update its triggers in the caller's transaction; `before` is None for a row just inserted."""
    if before is not None:
        tx.automations.save(after)
    old = None if before is None or before.definition is None else snapshots.of_row(before)
    register(tx, old, before, after, rules, now)
    tx.wake(TOPIC)


def register(
    tx: Tx, old: Automation | None, before: AutomationRow | None, after: AutomationRow, rules: Rules, now: datetime
) -> None:
    known = {} if before is None else {row.id: row for row in tx.triggers.of(after.id)}
    new = None if after.definition is None else snapshots.of_row(after)
    head = tx.events.head() if new is not None and any(isinstance(one.gate, Event) for one in new.triggers) else 0
    woken = after.armed and (before is None or not before.armed)
    for position, trigger in enumerate(() if new is None else new.triggers):
        assert new is not None  # noqa: S101  the loop is empty without one
        row = known.pop(trigger.id, None)
        was = old.trigger(trigger.id) if old is not None and row is not None else None
        timed = Timed(trigger.gate, rules.timing(new, trigger.id))
        before_timed = None if was is None or old is None else Timed(was.gate, rules.timing(old, was.id))
        state = after_edit(before_timed, timed, None if row is None else row.state, now, head=head)
        if woken and row is not None:  # times and events that passed while it was off are dropped
            state = replace(state, next_due_at=next_due(timed.gate, state, now, timed.timing), event_cursor=head)
        if was is not None and _listens_elsewhere(was.gate, trigger.gate):
            state = replace(state, event_cursor=head)
        fresh = row is None or before_timed != timed or woken
        state = _looked_at(trigger.gate, state, now, fresh)
        # A held trigger stays held, unless runs may overlap now: then the end of a run need not release any trigger.
        held_by = None if row is None or new.policies.overlap is Overlap.ALLOW else row.held_by
        tx.triggers.put(replace(_trigger_row(after, new, trigger, position, state, rules), held_by=held_by))
    for row in known.values():  # triggers that were removed, or all of them when there is no readable definition
        if new is not None:
            tx.triggers.remove(row)
        else:
            tx.triggers.put(replace(row, armed=False))


def rezone(tx: Tx, rules: Rules, now: datetime) -> int:
    """Compute new times for schedules that use the city's time zone, after it changed; returns how many."""
    moved = tx.triggers.of_other_zone(rules.zone.key)
    for row in moved:
        automation = tx.automations.lock(row.automation)
        if automation is None or automation.definition is None:
            continue
        definition = snapshots.of_row(automation)
        trigger = definition.trigger(row.id)
        if trigger is not None:
            at = next_due(trigger.gate, row.state, now, rules.timing(definition, row.id))
            tx.triggers.put(replace(row, state=replace(row.state, next_due_at=at), zone=rules.zone.key))
    return len(moved)


def _trigger_row(
    row: AutomationRow, automation: Automation, trigger: Trigger, position: int, state: TriggerState, rules: Rules
) -> TriggerRow:
    gate = trigger.gate
    inherits = isinstance(gate, Cron | Schedule) and not automation.timezone
    return TriggerRow(
        automation=row.id,
        id=trigger.id,
        kind=gate.kind.value,
        position=position,
        armed=row.armed,
        state=state,
        event_key=gate.on if isinstance(gate, Event) else _hook(gate),
        zone=rules.zone.key if inherits else None,
    )


def _hook(gate: Gate) -> str | None:
    """The key by which deliveries of a connection find the triggers that wait for them; no event type has a colon."""
    return hook_key(gate.connection) if isinstance(gate, Webhook) else None


def _listens_elsewhere(old: Gate, new: Gate) -> bool:
    return isinstance(old, Event) and isinstance(new, Event) and old.on != new.on


def _looked_at(gate: Gate, state: TriggerState, now: datetime, fresh: bool) -> TriggerState:  # noqa: FBT001  one question
    """Set when the scheduler looks at the trigger: never for a condition, which is checked separately; now for a new or
    changed event trigger, because events may have been numbered while it was being written.
    """
    if isinstance(gate, Condition):
        return replace(state, next_due_at=None)
    if isinstance(gate, Event) and fresh:
        return replace(state, next_due_at=now)
    return state


def quiet_at(automation: Automation, since: datetime) -> datetime | None:
    """When to report the automation as quiet; `since` is its last firing, or when it was armed or edited."""
    after = automation.policies.quiet_after
    return None if after is None else since + after
