"""What an automation would be before it is stored: every problem with its key, its words, its next times, its file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.decode import Invalid
from lamplighter.domain.automations.forecast import forecast
from lamplighter.domain.automations.model import AgentAction, Automation
from lamplighter.domain.automations.reading import Problem
from lamplighter.domain.automations.references import unknown_names
from lamplighter.domain.automations.shape import to_file, trigger_shape
from lamplighter.kit.shapes import given
from lamplighter.kit.toml_writing import dumped
from lamplighter.services.automations import editing, outlook, references, snapshots
from lamplighter.services.automations.operations import CreateAutomation, ModeMissing, need_mode
from lamplighter.services.automations.views import FiringView
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, read
from lamplighter.store.tx import Tx

AHEAD = timedelta(days=366)


@dataclass(frozen=True)
class PreviewAutomation:
    """What an automation would be, and when it would fire; nothing is stored.

    Such as: lamp automation preview tidy --exec 'make tidy' --daily 03:30
    """

    body: Mapping[str, Any] = given("The keys of an automation.toml; of a change only what changes.", whole=True)
    of: str | None = given(
        "The stored automation that it would change; a new one when left out.", default=None, names="automation"
    )
    count: int = given("At most so many times.", default=5, least=1, most=100)


@dataclass(frozen=True)
class ProblemView:
    key: str
    message: str


@dataclass(frozen=True)
class TriggerWords:
    id: str
    kind: str
    human_schedule: str


@dataclass(frozen=True)
class PreviewView:
    """Without problems it could be stored as it is; with some, what follows is empty."""

    problems: Sequence[ProblemView]
    triggers: Sequence[TriggerWords]
    next: Sequence[FiringView]
    toml: str | None


def preview_automation(tx: Tx, ask: PreviewAutomation, ctx: Context) -> PreviewView:
    """Raises AutomationUnknown, ReadOnly."""
    if ask.of is None:
        decoded, before = editing.decoded_new(ask.body, ctx.surface, ctx.now), None
    else:
        row = editing.get(tx, ask.of)
        decoded, before = editing.decoded_change(row, ask.body, ctx.now), row
    if isinstance(decoded, Invalid):
        return _refused(decoded.problems)
    problems = [*_taken(tx, decoded, None if before is None else before.scoped_name)]
    found = references.known(tx, ctx)
    told = [] if before is None else unknown_names(snapshots.of_row(before), found)
    problems += [one for one in unknown_names(decoded, found) if one not in told]
    if before is None and not problems:
        problems += _without_mode(tx, ask.body, ctx)
    return _refused(problems) if problems else _shown(decoded, ask.count, ctx)


def _refused(problems: Sequence[Problem]) -> PreviewView:
    return PreviewView([ProblemView(one.key, one.message) for one in problems], (), (), None)


def _taken(tx: Tx, automation: Automation, name: str | None) -> list[Problem]:
    is_other = automation.scoped_name != name and tx.automations.named(automation.scoped_name) is not None
    return [Problem("name", f"there is already an automation `{automation.scoped_name}`")] if is_other else []


def _without_mode(tx: Tx, body: Mapping[str, Any], ctx: Context) -> list[Problem]:
    try:
        need_mode(tx, CreateAutomation(body), ctx)
    except ModeMissing:
        return [Problem(f"{AgentAction.kind.value}.mode", "is missing: what the agent may do without asking")]
    return []


def _shown(automation: Automation, count: int, ctx: Context) -> PreviewView:
    zone = ctx.rules.zone_of(automation)
    named = None if zone.key == ctx.rules.zone.key else zone.key
    words = [trigger_shape(one, zone, named=named) for one in automation.triggers]
    coming = forecast([automation], ctx.rules.zone_of, {}, (ctx.now, ctx.now + AHEAD))
    return PreviewView(
        problems=(),
        triggers=[TriggerWords(one["id"], one["kind"], one["human_schedule"]) for one in words],
        next=[outlook.firing_view(one, zone) for one in islice(coming, count)],
        toml=dumped(to_file(automation)),
    )


PREVIEW = read(
    "automation.preview", Verb.READ, PreviewAutomation, PreviewView, preview_automation,
    needs=Need.DEFINITIONS, http=Http("POST", "/previews"),
)  # fmt: skip
