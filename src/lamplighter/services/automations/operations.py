"""What people, programs and agents can do to automations, and to the city's firing as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.model import Automation
from lamplighter.domain.automations.shape import to_shape
from lamplighter.domain.automations.templates import from_template
from lamplighter.domain.city.modes import modes_told
from lamplighter.domain.city.run_plan import named_preset
from lamplighter.kit import toml_text
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.services import configurations
from lamplighter.services.automations import editing, firing, outlook, references, snapshots
from lamplighter.services.automations.queries import NamedAutomation, version
from lamplighter.services.automations.views import AutomationDeleted, AutomationView, PauseView, SuspensionView
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.services.runs import review
from lamplighter.services.runs.views import RunView, view
from lamplighter.store.tx import Tx

TOOL = "tool"
_OF_TEMPLATES = frozenset({"name", "path", "rig"})


class NotToml(UsageError):
    def __init__(self, file: str, error: ValueError) -> None:
        super().__init__(f"{file} is not TOML: {error}.", hint="`lamp automation export` shows what one looks like.")


@record
class CreateAutomation:
    """Create an automation in the store.

    Such as: lamp automation create tidy --exec 'make tidy' --daily 03:30
    """

    body: Mapping[str, Any] = given("The keys of an automation.toml, with its `name` and `rig`.", whole=True)
    template: str | None = given(
        "Start from a template; made disabled, for a person to enable.", default=None, metavar="ID"
    )


@dataclass(frozen=True, kw_only=True)
class ProposeAutomation:
    """Propose an automation; it is stored disabled until a person enables it."""

    name: str = given("Its name.")
    description: str = given("What it is for.", default="")
    rig: str | None = given("The rig it belongs to.", default=None)
    action: Mapping[str, Any] = given("One of kind exec, formula or agent, with its keys.")
    triggers: Sequence[Mapping[str, Any]] = given("What makes it fire.", default=())
    policies: Mapping[str, Any] = given("Overlap, retry, deadline, budget and the like.", default={})


@record
class EditAutomation(NamedAutomation):
    """Change a stored automation: only what is named changes."""

    changes: Mapping[str, Any] = given("The keys to change.", whole=True, default={})


@record
class EnableAutomation(NamedAutomation):
    """Let it fire; its count of failures starts anew."""


@record
class DisableAutomation(NamedAutomation):
    """Keep it from firing; it can still be run by hand."""


@record
class SuspendAutomation(NamedAutomation):
    """Hold it back for a while: times that pass are on record, events wait, and nobody can run it."""


@record
class ResumeAutomation(NamedAutomation):
    """Lift its suspension."""


@record
class DeleteAutomation(NamedAutomation):
    """Delete a stored automation; its runs stay in history."""


@record
class ImportAutomation:
    """A stored automation from an automation.toml; it fires at once unless the file or --disabled says otherwise."""

    toml: str = given("The text of the file.")
    name: str = given("Its name.")
    rig: str | None = given("The rig it belongs to.", default=None)
    file: str = given("What messages call the file.", default="The text")
    disabled: bool = given("Do not let it fire yet.", default=False)


@record
class RunAutomation(NamedAutomation):
    """Run it now, whatever its triggers say; their times stay as they are."""

    payload: Mapping[str, Any] = given("Data for the action, in its trigger file.", default={})
    key: str | None = given("A repeated request with the same key starts no second run.", default=None)


@record
class PauseCity:
    """Stop all firing at once, and start no run; those under way go on. `lamp resume` lifts it."""


def create_automation(tx: Tx, ask: CreateAutomation, ctx: Context) -> AutomationView:
    """What an agent's tool creates is disabled, whatever it says: a person must enable it.

    Raises DefinitionInvalid, NameTaken, NotFound for a template that there is not, and UsageError for keys beside one.
    """
    if ask.template is not None:
        made = _from_template(ask.template, ask.body)
        row = editing.create(tx, to_shape(made) | {"enabled": False}, source=made.source, rules=ctx.rules, ctx=ctx)
    elif ctx.surface == TOOL:
        row = editing.create(tx, {**ask.body, "enabled": False}, source=needs.FROM_AGENTS, rules=ctx.rules, ctx=ctx)
        proposed = needs.draft(row)
        if proposed is not None:
            needs.open_item(tx, proposed, ctx=ctx)
    else:
        row = editing.create(tx, ask.body, source=ctx.surface, rules=ctx.rules, ctx=ctx)
    references.refuse_unknown(tx, row, ctx)
    need_mode(tx, ask, ctx)  # last: a name that leads nowhere is told before it is asked for
    return _shown(tx, row.scoped_name, ctx)


class ModeMissing(UsageError):
    """`told` has a line for each mode: what it lets the program do, and whether a run can complete in it."""

    def __init__(self, told: Sequence[str]) -> None:
        super().__init__(
            "An agent automation needs a mode: what the agent may do without asking.\n" + "\n".join(told),
            hint="Name one with --mode, or as `mode` of `agent`.",
        )
        self.told = tuple(told)


def need_mode(tx: Tx, ask: CreateAutomation, ctx: Context) -> None:
    """Raises ModeMissing for an agent action without a mode; a template and a configuration may bring theirs."""
    action = ask.body.get("agent") or ask.body.get("action")
    agent = action if isinstance(action, Mapping) and action.get("kind", "agent") == "agent" else None
    if agent is None or agent.get("mode") is not None or ask.template is not None:
        return
    if agent.get("session") is not None or agent.get("agent") is not None:
        return  # a conversation and an agent of the city have one already
    chosen = configurations.known(tx).get(str(agent.get("configuration") or ""))
    if chosen is not None and chosen.mode:
        return
    named = agent.get("preset") or (chosen.preset if chosen is not None else "") or ctx.city.workspace.provider
    raise ModeMissing(modes_told(named_preset(ctx.city, str(named))))


def _from_template(template: str, body: Mapping[str, Any]) -> Automation:
    others = sorted(set(body) - _OF_TEMPLATES - ({"enabled"} if body.get("enabled") is False else set()))
    if others:
        raise UsageError(
            f"A template takes a name, a path and a rig; `{others[0]}` is none of them.",
            hint="Create the automation from the template, then change it with `lamp automation edit`.",
        )
    return from_template(template, name=body.get("name"), path=body.get("path"), rig=body.get("rig"))


def edit_automation(tx: Tx, ask: EditAutomation, ctx: Context) -> AutomationView:
    old = editing.get(tx, ask.scoped_name)
    row = editing.edit(tx, ask.scoped_name, ask.changes, rules=ctx.rules, ctx=ctx)
    references.refuse_unknown(tx, row, ctx, before=snapshots.of_row(old))
    return _shown(tx, row.scoped_name, ctx)


def enable_automation(tx: Tx, ask: EnableAutomation, ctx: Context) -> AutomationView:
    editing.set_enabled(tx, ask.scoped_name, enabled=True, rules=ctx.rules, ctx=ctx)
    return _shown(tx, ask.scoped_name, ctx)


def disable_automation(tx: Tx, ask: DisableAutomation, ctx: Context) -> AutomationView:
    editing.set_enabled(tx, ask.scoped_name, enabled=False, rules=ctx.rules, ctx=ctx)
    return _shown(tx, ask.scoped_name, ctx)


def suspend_automation(tx: Tx, ask: SuspendAutomation, ctx: Context) -> SuspensionView:
    changed = editing.set_suspended(tx, ask.scoped_name, suspended=True, ctx=ctx)
    return SuspensionView(ask.scoped_name, suspended=True, changed=changed)


def resume_automation(tx: Tx, ask: ResumeAutomation, ctx: Context) -> SuspensionView:
    changed = editing.set_suspended(tx, ask.scoped_name, suspended=False, ctx=ctx)
    return SuspensionView(ask.scoped_name, suspended=False, changed=changed)


def delete_automation(tx: Tx, ask: DeleteAutomation, ctx: Context) -> AutomationDeleted:
    editing.delete(tx, ask.scoped_name, ctx=ctx)
    return AutomationDeleted(ask.scoped_name)


def import_automation(tx: Tx, ask: ImportAutomation, ctx: Context) -> AutomationView:
    """It is enabled unless the file says `enabled = false`. Raises NotToml, DefinitionInvalid, NameTaken, ReadOnly."""
    try:
        tree = toml_text.parse(ask.toml)
    except ValueError as error:
        raise NotToml(ask.file, error) from error
    wanted = editing.Import(tree=tree, name=ask.name, rig=ask.rig)
    row = editing.import_file(tx, wanted, rules=ctx.rules, ctx=ctx)
    references.refuse_unknown(tx, row, ctx)
    if ask.disabled and row.enabled:
        editing.set_enabled(tx, row.scoped_name, enabled=False, rules=ctx.rules, ctx=ctx)
    return _shown(tx, row.scoped_name, ctx)


def run_automation(tx: Tx, ask: RunAutomation, ctx: Context) -> RunView:
    """Raises what `run_by_hand` raises."""
    wanted = firing.ByHand(ask.scoped_name, payload=ask.payload, key=ask.key)
    fired = firing.run_by_hand(tx, wanted, rules=ctx.rules, ctx=ctx)
    return view(review.get(tx, fired.run))


def pause_city(tx: Tx, _ask: PauseCity, ctx: Context) -> PauseView:
    return PauseView(paused=True, changed=editing.pause(tx, ctx=ctx))


def _shown(tx: Tx, scoped_name: str, ctx: Context) -> AutomationView:
    return outlook.shown(tx, [outlook.standing(tx, scoped_name)], ctx)[0]


_WRITE, _NEEDS = Verb.WRITE_AUTOMATIONS, {"needs": Need.DEFINITIONS}
CREATE = transaction("automation.create", _WRITE, CreateAutomation, AutomationView, create_automation,
                     form=ProposeAutomation, tool="automation_create", **_NEEDS,
    http=Http("POST", "/automations", status=201, location="/automations/{scoped_name}"))  # fmt: skip
EDIT = transaction(
    "automation.edit",
    _WRITE,
    EditAutomation,
    AutomationView,
    edit_automation,
    **_NEEDS,
    http=Http("PATCH", "/automations/{name}"),
    version=version,
)
ENABLE = transaction(
    "automation.enable",
    _WRITE,
    EnableAutomation,
    AutomationView,
    enable_automation,
    **_NEEDS,
    http=Http("POST", "/automations/{name}/enable"),
)
DISABLE = transaction(
    "automation.disable",
    _WRITE,
    DisableAutomation,
    AutomationView,
    disable_automation,
    **_NEEDS,
    http=Http("POST", "/automations/{name}/disable"),
)
SUSPEND = transaction(
    "automation.suspend",
    _WRITE,
    SuspendAutomation,
    SuspensionView,
    suspend_automation,
    **_NEEDS,
    http=Http("POST", "/automations/{name}/suspend"),
)
RESUME = transaction(
    "automation.resume",
    _WRITE,
    ResumeAutomation,
    SuspensionView,
    resume_automation,
    **_NEEDS,
    http=Http("POST", "/automations/{name}/resume"),
)
DELETE = transaction(
    "automation.delete",
    _WRITE,
    DeleteAutomation,
    AutomationDeleted,
    delete_automation,
    **_NEEDS,
    http=Http("DELETE", "/automations/{name}", status=204),
    version=version,
)
IMPORT = transaction(
    "automation.import",
    _WRITE,
    ImportAutomation,
    AutomationView,
    import_automation,
    **_NEEDS,
    http=Http("POST", "/imports", status=201, location="/automations/{scoped_name}"),
)
RUN_AUTOMATION = transaction(
    "automation.run", Verb.RUN_AUTOMATION, RunAutomation, RunView, run_automation, **_NEEDS,
    http=Http("POST", "/automations/{name}/run", status=201, location="/runs/{id}")
)  # fmt: skip
PAUSE = transaction(
    "city.pause", Verb.PAUSE_CITY, PauseCity, PauseView, pause_city, command="pause", http=Http("POST", "/city/pause")
)
