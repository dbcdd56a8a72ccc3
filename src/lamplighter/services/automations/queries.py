"""Reading automations: lists, one in full, what is due and why, what fires next, and what became of past times."""

from datetime import datetime, timedelta

from lamplighter.domain.access import Verb
from lamplighter.domain.automations.templates import TEMPLATES
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import record
from lamplighter.kit.shapes import given
from lamplighter.kit.toml_writing import dumped
from lamplighter.services.automations import editing, firing, outlook
from lamplighter.services.automations.views import (
    AutomationFile,
    AutomationView,
    ExplanationView,
    FiringView,
    TemplateView,
    TriggerEventView,
    VerdictView,
)
from lamplighter.services.context import Context
from lamplighter.services.host import Host
from lamplighter.services.operation import Http, Need, Page, effect, read
from lamplighter.services.versions import version_of
from lamplighter.store.tx import Tx

PAGE = 1000
CHECKS_WITHIN = 3600.0
LAST_YEAR = 9000
"""In seconds: conditions have time limits of their own, which a city may set as it likes."""


_OF_RIG = "Only those of this rig; with a NAME the same as NAME:rig:RIG."


def scoped(name: str, rig: str | None) -> str:
    return f"{name}:rig:{rig}" if rig and ":rig:" not in name else name


@record
class NamedAutomation:
    """An automation, by its scoped name or by name and rig."""

    name: str = given("Its name.", positional=True, names="automation")
    rig: str | None = given("The automation of this rig; the same as NAME:rig:RIG.", default=None, names="rig")

    @property
    def scoped_name(self) -> str:
        return scoped(self.name, self.rig)


@record
class ListAutomations:
    """Every automation: what it does, when it fires, whether it is on."""

    rig: str | None = given("Only those of this rig.", default=None, names="rig")
    after: str | None = given(
        "Only those whose scoped names come after this one: the next page.", default=None, metavar="NAME"
    )
    limit: int = given("At most so many.", default=PAGE, least=1, most=10_000)


@record
class AllAutomations:
    """All automations with their triggers and next times."""


@record
class ShowAutomation(NamedAutomation):
    """One automation in full."""


@record
class CheckAutomations:
    """What is due now, and why or why not. Exits 0 when something is due, else 1."""

    name: str | None = given("Only this one.", default=None, positional=True, names="automation")
    rig: str | None = given(_OF_RIG, default=None, names="rig")


@record
class NextFirings:
    """When timed automations fire next, in order. Conditions and events cannot be predicted."""

    name: str | None = given("Only this one.", default=None, positional=True, names="automation")
    rig: str | None = given(_OF_RIG, default=None, names="rig")
    count: int = given("At most so many.", default=10, least=1, most=1000)
    days: float = given("Look so far ahead.", default=366.0, least=0, most=100_000)


@record
class Simulate:
    """What would fire, in order, if nothing else happened. Conditions and events cannot be predicted."""

    days: float = given("So far ahead.", default=7.0, least=0, most=3660)
    start: datetime | None = given("From then on; now when left out.", default=None, key="from")
    limit: int = given("At most so many.", default=500, least=1, most=100_001)
    name: str | None = given("Only this automation.", default=None, names="automation")
    rig: str | None = given(_OF_RIG, default=None, names="rig")
    each: int | None = given("Of each automation at most so many.", default=None, least=1, most=100_001)


@record
class ExplainAutomation(NamedAutomation):
    """Why it did or did not fire, and when it will: gate, policy, suspension, previous run."""


@record
class AutomationHistory(NamedAutomation):
    """Every slot and what became of it: fired, late, missed, skipped and why; newest first."""

    before: str | None = given("Only entries older than this one: the next page.", default=None, metavar="ID")
    limit: int = given("At most so many.", default=50, least=1, most=10_000)


@record
class ListTemplates:
    """Starting points: `lamp automation create NAME --template ID --path DIR`."""


@record
class ExportAutomation(NamedAutomation):
    """The automation.toml that says the same."""


def list_automations(tx: Tx, ask: ListAutomations, ctx: Context) -> list[AutomationView]:
    rows = tx.automations.page(after=ask.after or "", limit=ask.limit, rig=ask.rig)
    return outlook.shown(tx, outlook.with_triggers(tx, rows), ctx)


def show_automation(tx: Tx, ask: NamedAutomation, ctx: Context) -> AutomationView:
    """Raises AutomationUnknown."""
    return outlook.shown(tx, [outlook.standing(tx, ask.scoped_name)], ctx)[0]


async def check_automations(host: Host, ask: CheckAutomations, ctx: Context) -> list[VerdictView]:
    """Raises AutomationUnknown, and what running the commands of conditions raises."""
    name = None if ask.name is None else scoped(ask.name, ask.rig)
    checks = await _checks(host, name, ask.rig)
    found = await host.store.read(
        outlook.verdicts, now=ctx.now, rules=ctx.rules, scoped_name=name, rig=ask.rig, checks=checks
    )
    return [one.view() for one in found]


async def explain_automation(host: Host, ask: ExplainAutomation, ctx: Context) -> ExplanationView:
    """Raises AutomationUnknown, and what running the commands of conditions raises."""
    name = ask.scoped_name
    checks = await _checks(host, name)
    sentences = await host.store.read(outlook.explained, name, now=ctx.now, rules=ctx.rules, checks=checks)
    return ExplanationView(name, sentences)


async def _checks(host: Host, name: str | None, rig: str | None = None) -> outlook.Checks:
    asked = await host.store.read(outlook.conditions, name, rig)
    answers = await host.check_conditions(asked) if asked else []
    return {(one.row.scoped_name, one.trigger): answer for one, answer in zip(asked, answers, strict=True)}


def next_firings(tx: Tx, ask: NextFirings, ctx: Context) -> list[FiringView]:
    """Raises AutomationUnknown."""
    name = None if ask.name is None else scoped(ask.name, ask.rig)
    span = (ctx.now, ctx.now + timedelta(days=ask.days))
    found = outlook.standings(tx, name, ask.rig)
    return outlook.next_firings(found, span, rules=ctx.rules, limit=ask.count)


def simulate(tx: Tx, ask: Simulate, ctx: Context) -> list[FiringView]:
    """Raises AutomationUnknown, UsageError for a time that no calendar reaches."""
    start = ask.start or ctx.now
    if start.year >= LAST_YEAR:
        raise UsageError(f"{start:%Y-%m-%d} is too far ahead.", hint=f"Begin before the year {LAST_YEAR}.")
    span, name = (start, start + timedelta(days=ask.days)), None if ask.name is None else scoped(ask.name, ask.rig)
    found = outlook.standings(tx, name, ask.rig)
    return outlook.next_firings(found, span, rules=ctx.rules, limit=ask.limit, each=ask.each)


def automation_history(tx: Tx, ask: AutomationHistory, _ctx: Context) -> list[TriggerEventView]:
    """Also after the automation's deletion. Raises AutomationUnknown."""
    return outlook.history(tx, ask.scoped_name, before=ask.before, limit=ask.limit)


def list_templates(_tx: Tx | None, _ask: ListTemplates, _ctx: Context | None) -> list[TemplateView]:
    return [
        TemplateView(one.id, one.name, one.badge, one.description, one.needs or None, one.prompt) for one in TEMPLATES
    ]


def export_automation(tx: Tx, ask: ExportAutomation, _ctx: Context) -> AutomationFile:
    """Raises AutomationUnknown, DefinitionBroken."""
    return AutomationFile(dumped(editing.export(tx, ask.scoped_name)))


def version(tx: Tx, ask: NamedAutomation, *, lock: bool) -> str:
    """Of what people change about it, not of what firing does. Raises AutomationUnknown."""
    row = firing.locked_named(tx, ask.scoped_name) if lock else editing.get(tx, ask.scoped_name)
    return version_of(row.id, row.scoped_name, row.definition, row.enabled, row.suspended)


_NEEDS = {"needs": Need.DEFINITIONS}
LIST = read("automation.list", Verb.READ, ListAutomations, list[AutomationView], list_automations,
            form=AllAutomations, tool="automation_list", **_NEEDS,
    http=Http("GET", "/automations", page=Page("after", "scoped_name")))  # fmt: skip
SHOW = read(
    "automation.show",
    Verb.READ,
    ShowAutomation,
    AutomationView,
    show_automation,
    **_NEEDS,
    http=Http("GET", "/automations/{name}"),
    version=version,
)
CHECK = effect("automation.check", Verb.READ, CheckAutomations, list[VerdictView], check_automations,
               within=CHECKS_WITHIN, **_NEEDS, http=Http("GET", "/due"))  # fmt: skip
NEXT = read(
    "automation.next", Verb.READ, NextFirings, list[FiringView], next_firings, **_NEEDS, http=Http("GET", "/next")
)
EXPLAIN = effect("automation.explain", Verb.READ, ExplainAutomation, ExplanationView, explain_automation,
                 within=CHECKS_WITHIN, **_NEEDS, http=Http("GET", "/automations/{name}/explain"))  # fmt: skip
HISTORY = read(
    "automation.history",
    Verb.READ,
    AutomationHistory,
    list[TriggerEventView],
    automation_history,
    **_NEEDS,
    http=Http("GET", "/automations/{name}/history", page=Page("before", "id")),
)
TEMPLATE_LIST = read(
    "automation.templates", Verb.READ, ListTemplates, list[TemplateView], list_templates, http=Http("GET", "/templates")
)
EXPORT = read(
    "automation.export",
    Verb.READ,
    ExportAutomation,
    AutomationFile,
    export_automation,
    **_NEEDS,
    http=Http("GET", "/automations/{name}/export"),
)
SIMULATE = read(
    "city.simulate",
    Verb.READ,
    Simulate,
    list[FiringView],
    simulate,
    command="simulate",
    **_NEEDS,
    http=Http("GET", "/simulate"),
)
