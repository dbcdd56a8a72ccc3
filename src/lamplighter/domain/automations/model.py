"""The model of an automation: triggers, one action, and policies, as plain values and closed unions."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lamplighter.domain.automations.policies import Policies
from lamplighter.kit.cron import CronExpression
from lamplighter.kit.records import record
from lamplighter.kit.schedule import Daily, Hourly, Once, Weekly

EXEC_TIMEOUT = timedelta(minutes=5)
FORMULA_TIMEOUT = timedelta(seconds=30)
DEADLINE = timedelta(hours=2)
SCHEDULED_AGENT_DEADLINE = timedelta(minutes=30)
FORMULA_DEADLINE = timedelta(hours=24)
CONDITION_TIMEOUT = timedelta(seconds=10)
EVENT_BATCH = 100
GATHER_MOST = 10
"""The longest wait, as a multiple of `gather`, where nothing else is said."""


class TriggerKind(StrEnum):
    COOLDOWN = "cooldown"
    CRON = "cron"
    SCHEDULE = "schedule"
    CONDITION = "condition"
    EVENT = "event"
    WEBHOOK = "webhook"
    MANUAL = "manual"


@record
class Cooldown:
    interval: timedelta
    kind = TriggerKind.COOLDOWN


@record
class Cron:
    expression: CronExpression
    kind = TriggerKind.CRON


@record
class Schedule:
    when: Hourly | Daily | Weekly | Once
    kind = TriggerKind.SCHEDULE


@record
class Condition:
    """`interval` is the minimum time between firings; without it a check that stays true fires on every pass."""

    check: str
    interval: timedelta | None = None
    timeout: timedelta = CONDITION_TIMEOUT
    kind = TriggerKind.CONDITION


@record
class Event:
    """`on` is an event type or a pattern such as `bead.*`; `match` narrows it by payload."""

    on: str
    match: Mapping[str, Any] = field(default_factory=dict)
    batch: int = EVENT_BATCH
    kind = TriggerKind.EVENT


@record
class Webhook:
    """Deliveries on `connection` whose event matches one of `events` (any, if empty) and whose payload matches.

    `filter` compares the fields that the provider's payloads are read into. With `gather`, those about the same thing
    become one run: when none has come for so long, and after `gather_most` at the latest, or when they are many.
    """

    connection: str
    events: tuple[str, ...] = ()
    match: Mapping[str, Any] = field(default_factory=dict)
    filter: Mapping[str, Any] = field(default_factory=dict)
    gather: timedelta | None = None
    gather_most: timedelta | None = None
    kind = TriggerKind.WEBHOOK


@record
class Manual:
    kind = TriggerKind.MANUAL


Gate = Cooldown | Cron | Schedule | Condition | Event | Webhook | Manual


@record
class Trigger:
    """One gate of an automation; `id` is unique within the automation, so that edits can keep the trigger's state.

    `continue_by` names the value in what fires it that says which conversation a run goes on with.
    """

    id: str
    gate: Gate
    continue_by: str | None = None


class Mode(StrEnum):
    APPROVAL = "approval"
    PLAN = "plan"
    FULL_ACCESS = "full_access"


class Effort(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


class Strategy(StrEnum):
    FIXED = "fixed"
    AGENT_DECIDE = "agent_decide"


class ActionKind(StrEnum):
    EXEC = "exec"
    FORMULA = "formula"
    AGENT = "agent"


@record
class Exec:
    command: str
    kind = ActionKind.EXEC


@record
class Formula:
    formula: str
    pool: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    kind = ActionKind.FORMULA


@record
class AgentAction:
    """A prompt for an agent program, which works in the rig's or city's directory unless `path` or a configuration says
    otherwise.

    The texts of `prompt_file` and `includes` follow the prompt; they are read when a run starts. `fallback_preset` and
    `fallback_model` are taken while the limit of the provider is reached. Without a mode, the configuration's counts.

    With `session`, the id of a session or a run, the prompt is the next turn of that conversation; with `agent` it is
    told to that agent of the city.
    """

    prompt: str = ""
    path: str | None = None
    configuration: str | None = None
    strategy: Strategy = Strategy.FIXED
    configurations: tuple[str, ...] = ()
    fallback: str | None = None
    preset: str | None = None
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    prompt_file: str | None = None
    includes: tuple[str, ...] = ()
    fallback_preset: str | None = None
    fallback_model: str | None = None
    session: str | None = None
    agent: str | None = None
    kind = ActionKind.AGENT


Action = Exec | Formula | AgentAction


@record
class Automation:
    """A definition. `source` says where it comes from: `file`, `api`, `agent`, `template:<id>`; `path` is its file."""

    name: str
    action: Action
    triggers: tuple[Trigger, ...]
    rig: str | None = None
    description: str = ""
    enabled: bool = True
    timezone: str | None = None
    policies: Policies = field(default_factory=Policies)
    source: str = "api"
    path: str | None = None
    owner: str = ""
    """Who answers for it, as people write it."""
    tags: tuple[str, ...] = ()

    @property
    def scoped_name(self) -> str:
        return scoped_name(self.name, self.rig)

    @property
    def pool(self) -> str | None:
        """The pool a formula's wisp goes to, qualified by the rig."""
        if not isinstance(self.action, Formula) or self.action.pool is None:
            return None
        return qualified_pool(self.action.pool, self.rig)

    def continue_by(self, trigger_id: str) -> str | None:
        """How runs of the trigger find their conversation; by hand as the first trigger that says how."""
        found = self.trigger(trigger_id)
        if found is not None and (found.continue_by or not isinstance(found.gate, Manual)):
            return found.continue_by
        return next((one.continue_by for one in self.triggers if one.continue_by), None)

    @property
    def connections(self) -> tuple[str, ...]:
        """The connections that its runs may use: those listed and those of its triggers; none if its list is empty."""
        listed = self.policies.connections
        if listed == ():
            return ()
        named = [one.gate.connection for one in self.triggers if isinstance(one.gate, Webhook)]
        return tuple(dict.fromkeys([*(listed or ()), *named]))

    @property
    def session(self) -> str | None:
        """The session or run whose conversation its runs go on with, whatever fires them."""
        return self.action.session if isinstance(self.action, AgentAction) else None

    @property
    def speaks_to(self) -> str | None:
        """The agent of the city that its runs are told to."""
        return self.action.agent if isinstance(self.action, AgentAction) else None

    def trigger(self, trigger_id: str) -> Trigger | None:
        return next((one for one in self.triggers if one.id == trigger_id), None)


def scoped_name(name: str, rig: str | None) -> str:
    return f"{name}:rig:{rig}" if rig else name


def qualified_pool(pool: str, rig: str | None) -> str:
    return f"{rig}/{pool}" if rig and "/" not in pool else pool


def time_limit(automation: Automation, cap: timedelta | None = None) -> timedelta | None:
    """How long the action may take. An agent action has only its own limit, if any; `cap` limits the other actions."""
    match automation.action:
        case Exec():
            limit = automation.policies.timeout or EXEC_TIMEOUT
        case Formula():
            limit = automation.policies.timeout or FORMULA_TIMEOUT
        case AgentAction():
            return automation.policies.timeout
    return min(limit, cap) if cap is not None else limit


def deadline(automation: Automation, kind: str, city: timedelta | None = None) -> timedelta:
    """How long a run may take from its creation to its end; `city` is the city's own default."""
    if automation.policies.deadline is not None:
        return automation.policies.deadline
    if isinstance(automation.action, Formula):
        return FORMULA_DEADLINE
    if isinstance(automation.action, AgentAction) and kind in {TriggerKind.SCHEDULE, TriggerKind.CRON}:
        return SCHEDULED_AGENT_DEADLINE
    return city or DEADLINE
