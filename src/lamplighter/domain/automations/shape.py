"""The plain shape of an automation, used by all interfaces and in run snapshots, and its conversion to file keys."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.model import (
    Action,
    AgentAction,
    Automation,
    Condition,
    Cooldown,
    Cron,
    Event,
    Exec,
    Formula,
    Gate,
    Manual,
    Schedule,
    Trigger,
    Webhook,
)
from lamplighter.domain.automations.policies import Policies
from lamplighter.domain.automations.words import gate_badge, human_gate
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.durations import format_duration
from lamplighter.kit.schedule import Daily, Hourly, Once, Weekly

POLICY_KEYS = frozenset(one.name for one in fields(Policies))

# Keys that interfaces add to a definition when they show it; they are read-only and dropped on input.
_SHOWN = frozenset({
    "scoped_name", "source", "path", "problems", "id", "state", "human_schedule", "badge", "next_due_at",
    "last_fired_at", "last_slot", "event_cursor", "created_at", "updated_at", "disabled_reason", "skipped",
    "suspended", "failures", "warnings", "limits", "last_run", "held_by", "checked_at", "check_result",
})  # fmt: skip


def to_shape(
    automation: Automation, zone: ZoneInfo | None = None, *, of_city: ZoneInfo | None = None
) -> dict[str, Any]:
    """`zone` is that of its times; where it is not the one `of_city`, the words for its triggers name it."""
    named = zone.key if zone is not None and of_city is not None and zone.key != of_city.key else None
    return {
        "name": automation.name,
        "scoped_name": automation.scoped_name,
        "rig": automation.rig,
        "description": automation.description,
        "owner": automation.owner,
        "tags": list(automation.tags),
        "enabled": automation.enabled,
        "timezone": automation.timezone,
        "source": automation.source,
        "path": automation.path,
        "action": action_shape(automation.action),
        "triggers": [trigger_shape(one, zone, named=named) for one in automation.triggers],
        "policies": policies_shape(automation.policies),
        "problems": [],
    }


def action_shape(action: Action) -> dict[str, Any]:
    match action:
        case Exec(command):
            return {"kind": "exec", "command": command}
        case Formula(formula, pool, variables):
            return {"kind": "formula", "formula": formula, "pool": pool, "vars": dict(variables)}
        case AgentAction():
            return {"kind": "agent"} | {one.name: _plain(getattr(action, one.name)) for one in fields(action)}


def trigger_shape(trigger: Trigger, zone: ZoneInfo | None = None, *, named: str | None = None) -> dict[str, Any]:
    words = {"human_schedule": human_gate(trigger.gate, zone, named=named), "badge": gate_badge(trigger.gate)}
    return (
        {"id": trigger.id, "kind": trigger.gate.kind.value} | gate_shape(trigger.gate) | _continue_by(trigger) | words
    )


def _continue_by(trigger: Trigger) -> dict[str, Any]:
    return {} if trigger.continue_by is None else {"continue_by": trigger.continue_by}


def gate_shape(gate: Gate) -> dict[str, Any]:  # noqa: PLR0911  one answer a kind
    """The gate's own keys, as a file writes them."""
    match gate:
        case Cooldown(interval):
            return {"interval": format_duration(interval)}
        case Cron(expression):
            return {"schedule": expression.text}
        case Schedule(when):
            return _when_shape(when)
        case Condition(check, interval, timeout):
            return {"check": check, "interval": _plain(interval), "check_timeout": format_duration(timeout)}
        case Event(on, match, batch):
            return {"on": on, "match": dict(match), "batch": batch}
        case Webhook(connection, events, match, wanted, gather, most):
            waits = {"gather": _plain(gather), "gather_most": _plain(most)}
            return {
                "connection": connection,
                "events": list(events),
                "match": dict(match),
                "filter": dict(wanted),
            } | waits
        case Manual():
            return {}


def policies_shape(policies: Policies) -> dict[str, Any]:
    flat = {one.name: _plain(getattr(policies, one.name)) for one in fields(policies)}
    for name in ("catch_up", "retry", "budget", "notify"):
        value = getattr(policies, name)
        flat[name] = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return flat


def to_file(automation: Automation) -> dict[str, Any]:
    """The tree of an `automation.toml` that decodes to the same definition; defaults are left out."""
    table: dict[str, Any] = {}
    if automation.description:
        table["description"] = automation.description
    if automation.owner:
        table["owner"] = automation.owner
    if automation.tags:
        table["tags"] = list(automation.tags)
    table |= _action_keys(action_shape(automation.action))
    if not automation.enabled:
        table["enabled"] = False
    if automation.timezone:
        table["timezone"] = automation.timezone
    defaults = policies_shape(Policies())
    table |= {
        key: _without_nothing(value) if isinstance(value, dict) else value
        for key, value in policies_shape(automation.policies).items()
        if value != defaults[key]
    }
    table["triggers"] = [
        {"id": one.id, "gate": one.gate.kind.value} | _without_nothing(gate_shape(one.gate)) | _continue_by(one)
        for one in automation.triggers
    ]
    return {"automation": table}


def flattened(body: Mapping[str, Any]) -> dict[str, Any]:
    """The shape, or a mix of shape and file keys, as file keys; read-only keys are dropped."""
    table = {key: value for key, value in body.items() if key not in _SHOWN | {"action", "policies", "triggers"}}
    if isinstance(body.get("policies"), Mapping):
        table |= body["policies"]
    elif body.get("policies") is not None:
        table["policies"] = body["policies"]  # kept, so that decoding refuses it
    if isinstance(body.get("action"), Mapping):
        table |= _action_keys(body["action"])
    elif body.get("action") is not None:
        table["action"] = body["action"]
    if body.get("triggers") is not None:
        table["triggers"] = _trigger_tables(body["triggers"])
    return table


def shape_key(key: str, body: Mapping[str, Any]) -> str:
    """The key in the caller's shape that corresponds to a file key, for reporting a problem."""
    first, _, rest = key.partition(".")
    if first == "gate":
        return "triggers"
    if first == "exec":
        return "action.command" if "action" in body else "action"
    if first == "agent":
        return f"action.{rest}" if rest else "action"
    if first in {"formula", "pool", "vars"}:
        return f"action.{key}"
    return f"policies.{key}" if first in POLICY_KEYS and first not in body else key


def _action_keys(action: Mapping[str, Any]) -> dict[str, Any]:
    rest = _without_nothing({key: value for key, value in action.items() if key != "kind"})
    match action.get("kind"):
        case "exec":
            command = rest.pop("command", "")
            return {"exec": command} | rest
        case "agent":
            if rest.get("prompt") == "" and rest.get("prompt_file"):
                del rest["prompt"]
            return {"agent": rest}
        case "formula":
            return {"formula": ""} | rest
        case other:
            return {"action": "nothing" if other is None else other}


def _trigger_tables(triggers: Any) -> Any:
    if not isinstance(triggers, list | tuple) or not all(isinstance(one, Mapping) for one in triggers):
        return triggers
    return [{key: value for key, value in one.items() if key not in _SHOWN - {"id"}} for one in triggers]


def _when_shape(when: Hourly | Daily | Weekly | Once) -> dict[str, Any]:
    match when:
        case Hourly(minute):
            return {"cadence": "hourly", "minute": minute}
        case Daily(hour, minute):
            return {"cadence": "daily", "hour": hour, "minute": minute}
        case Weekly(weekday, hour, minute):
            return {"cadence": "weekly", "weekday": weekday, "hour": hour, "minute": minute}
        case Once(at):
            return {"cadence": "once", "at": rfc3339(at)}


def _without_nothing(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in table.items() if one is not None and one not in ({}, [])}


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
