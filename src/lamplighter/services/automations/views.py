"""Automations as every surface shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.kit.records import record
from lamplighter.kit.shapes import given


@dataclass(frozen=True, kw_only=True)
class AutomationTriggerView:
    """A trigger with its present state."""

    id: str
    kind: str
    gate: Mapping[str, Any] = given("The gate's own keys, as a file writes them.", whole=True)
    human_schedule: str
    badge: str
    next_due_at: datetime | None
    last_fired_at: datetime | None
    last_slot: str | None
    event_cursor: int | None
    held_by: str | None
    checked_at: datetime | None
    check_result: str | None


@record
class LastRunView:
    """The newest run of an automation, which may still be under way."""

    id: str
    state: str
    reason: str | None
    started_at: datetime | None
    ended_at: datetime | None


@record
class LimitsView:
    """The limits in force: those of the definition, else the defaults, bounded by the city's `max_timeout`."""

    timeout: str | None
    deadline: str


@record
class AutomationView:
    """`action` and `limits` are None, and `policies` empty, where the file cannot be read; `problems` says why.

    `warnings` name what its runs will not find: a configuration, a preset, a formula, a rig.
    """

    name: str
    scoped_name: str
    rig: str | None
    description: str
    owner: str | None
    tags: Sequence[str]
    enabled: bool
    timezone: str | None
    source: str
    path: str | None
    action: Mapping[str, Any] | None
    triggers: Sequence[AutomationTriggerView]
    policies: Mapping[str, Any]
    problems: Sequence[str]
    id: str
    skipped: bool
    suspended: bool
    disabled_reason: str | None
    failures: int
    warnings: Sequence[str]
    limits: LimitsView | None
    last_run: LastRunView | None
    created_at: datetime
    updated_at: datetime


@record
class VerdictView:
    """Whether one trigger is due now."""

    scoped_name: str
    trigger: str
    due: bool
    reason: str
    last_fired_at: datetime | None
    next_due_at: datetime | None


@record
class FiringView:
    """A firing that is expected; `local` is its time in `zone`."""

    scoped_name: str
    trigger: str
    at: datetime
    local: str
    zone: str


@record
class ExplanationView:
    scoped_name: str
    sentences: Sequence[str]


@record
class TriggerEventView:
    """One time at which a trigger fired or did not, and what became of it; `count` joins repeated skips."""

    id: str
    automation: str
    trigger: str
    kind: str
    status: str
    reason: str | None
    slot: str | None
    due_at: datetime | None
    count: int
    first_at: datetime
    last_at: datetime
    run: str | None
    run_state: str | None


@record
class SuspensionView:
    """`changed` is false if it was so already."""

    scoped_name: str
    suspended: bool
    changed: bool


@record
class AutomationDeleted:
    scoped_name: str
    deleted: bool = True


@record
class AutomationFile:
    """The text of an automation.toml."""

    toml: str


@record
class TemplateView:
    id: str
    name: str
    badge: str
    description: str
    needs: str | None
    prompt: str


@record
class PauseView:
    """`changed` is false if the city was paused already."""

    paused: bool
    changed: bool
