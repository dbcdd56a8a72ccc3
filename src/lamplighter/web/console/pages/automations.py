"""Automations: the list, one with why, when and what became of its times, and a new one from a template."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from lamplighter.domain.automations.model import TriggerKind
from lamplighter.kit import json_text
from lamplighter.kit.errors import LampError, NotFound, UsageError
from lamplighter.services.automations.definitions import FILE
from lamplighter.services.automations.notes import KEEP_NOTES, READ_NOTES, KeepNotes, ReadNotes
from lamplighter.services.automations.operations import (
    CREATE,
    DISABLE,
    ENABLE,
    RESUME,
    RUN_AUTOMATION,
    SUSPEND,
    CreateAutomation,
    DisableAutomation,
    EnableAutomation,
    ResumeAutomation,
    RunAutomation,
    SuspendAutomation,
)
from lamplighter.services.automations.queries import (
    EXPLAIN,
    EXPORT,
    HISTORY,
    LIST,
    NEXT,
    SHOW,
    TEMPLATE_LIST,
    AutomationHistory,
    ExplainAutomation,
    ExportAutomation,
    ListAutomations,
    ListTemplates,
    NextFirings,
    ShowAutomation,
)
from lamplighter.services.automations.source import SOURCE, ShowSource
from lamplighter.services.automations.trying import TRY, TriedView, TryAutomation
from lamplighter.services.automations.views import AutomationView, TriggerEventView
from lamplighter.services.logins import LIST as LOGINS
from lamplighter.services.logins import ListLogins
from lamplighter.services.looking import PIN, PINS, UNPIN, ListPins, PinAutomation, UnpinAutomation
from lamplighter.services.rigs import LIST as RIGS
from lamplighter.services.rigs import ListRigs
from lamplighter.services.rollups import SHOW_COST, SHOW_STRIP, By, ShowCost, ShowStrip
from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.web.console.charts import outcomes_of, strip_of, times_of
from lamplighter.web.console.numbers import whole
from lamplighter.web.console.visit import Answer, Given, Visit, back, together

PAGE = 100
STRIP_DAYS = 14
HISTORY_ROWS = 30
COMING = 5
ROWS = 10
TIMED = 60
"""So many of the newest runs are in the chart of durations."""
CHART_DAYS = 30


async def automations(visit: Visit) -> Response:
    query = visit.query
    listed = visit.ask(LIST, ListAutomations(query.get("rig"), query.get("after"), PAGE + 1))
    found, pins, _ = await together(listed, visit.ask(PINS, ListPins()), visit.look())
    shown: list[AutomationView] = [] if found.error else found.value[:PAGE]
    pinned = set() if pins.error else {one.automation for one in pins.value}
    names = [one.scoped_name for one in shown]
    strips = await visit.ask(SHOW_STRIP, ShowStrip(days=STRIP_DAYS, among=names)) if names else Answer([])
    return await visit.page(
        "automations.html",
        found=found,
        shown=sorted(shown, key=lambda one: one.scoped_name not in pinned),
        more=shown[-1].scoped_name if not found.error and len(found.value) > PAGE else None,
        pinned=pinned,
        strips_error=strips.error,
        strips={} if strips.error else {one.automation: strip_of(one.days) for one in strips.value},
        query=query,
    )


async def automation(visit: Visit) -> Response:
    """Raises AutomationUnknown."""
    return await _automation(visit, None)


async def try_it(visit: Visit) -> Response:
    """A dry run; what it found is shown on the automation's page. Raises AutomationUnknown."""
    found = await visit.do(TRY, TryAutomation(visit.path["name"]))
    return await _automation(visit, Answer(found))


async def _automation(visit: Visit, tried: Answer[TriedView] | None) -> Response:
    """Raises AutomationUnknown."""
    name = visit.path["name"]
    shown = await visit.do(SHOW, ShowAutomation(name))
    why, coming, history, runs, toml, notes, days, cost, source, pins, _ = await together(
        visit.ask(EXPLAIN, ExplainAutomation(name)) if not shown.problems else _nothing(),
        visit.ask(NEXT, NextFirings(name, count=COMING)),
        visit.ask(HISTORY, AutomationHistory(name, limit=HISTORY_ROWS)),
        visit.ask(LIST_RUNS, ListRuns(automation=name, limit=TIMED)),
        visit.ask(EXPORT, ExportAutomation(name)),
        visit.ask(READ_NOTES, ReadNotes(shown.scoped_name)),
        visit.ask(SHOW_STRIP, ShowStrip(shown.scoped_name, CHART_DAYS)),
        visit.ask(SHOW_COST, ShowCost(By.MODEL, CHART_DAYS, shown.scoped_name)),
        visit.ask(SOURCE, ShowSource(shown.scoped_name)) if shown.source == FILE else _nothing(),
        visit.ask(PINS, ListPins()),
        visit.look(),
    )
    strip: list[TriggerEventView] = [] if history.error else list(reversed(history.value))
    return await visit.page(
        "automation.html", one=shown, why=why, coming=coming, history=history, runs=runs, strip=strip, toml=toml,
        pinned=not pins.error and shown.scoped_name in [one.automation for one in pins.value],
        newest=[] if runs.error else runs.value[:ROWS], times=None if runs.error else times_of(runs.value),
        failed=None if days.error else sum(count for day in days.value[0].days for name, count in day.outcomes.items()
                                           if name in {"failed", "timed_out"}),
        notes=notes, tried=tried, line=source.value.line if source.found else None, hooks=_hooks(visit, shown),
        address=_page_of(shown.scoped_name) if tried else None,
        days=days, chart=outcomes_of(days.value[0].days) if days.found else None, cost=cost,
    )  # fmt: skip


def _hooks(visit: Visit, shown: AutomationView) -> list[tuple[str, str]]:
    """The connections of its triggers, each with the address at which deliveries come in."""
    names = [str(one.gate["connection"]) for one in shown.triggers if one.kind == TriggerKind.WEBHOOK]
    return [(name, visit.address_of(f"/hooks/{name}")) for name in dict.fromkeys(names)]


async def pin(visit: Visit) -> Response:
    name = visit.path["name"]
    await visit.do(PIN, PinAutomation(name))
    return back(_page_of(name), "It stands on top of your list.")


async def unpin(visit: Visit) -> Response:
    name = visit.path["name"]
    await visit.do(UNPIN, UnpinAutomation(name))
    return back(_page_of(name), "It stands among the others again.")


async def _nothing() -> Answer[Any]:
    return Answer()


def _page_of(name: str) -> str:
    return f"/automations/{quote(name, safe=':')}"


async def run_now(visit: Visit) -> Response:
    """Raises UsageError for data that is not a JSON object, and what running it raises."""
    form = await visit.form()
    found = await visit.do(RUN_AUTOMATION, RunAutomation(visit.path["name"], payload=_payload(form["payload"])))
    return back(f"/runs/{found.id}", "Started by hand; its schedule stays as it is.")


def _payload(text: str) -> Mapping[str, Any]:
    if not text.strip():
        return {}
    try:
        found = json_text.parse(text)
    except ValueError as error:
        raise UsageError(f"The data is not JSON: {error}.", hint='Such as {"branch": "main"}.') from error
    if not isinstance(found, dict):
        raise UsageError("The data is not an object.", hint='Such as {"branch": "main"}.')
    return found


async def keep_notes(visit: Visit) -> Response:
    """Raises NotesChanged if somebody wrote meanwhile."""
    form = await visit.form()
    text = form["text"].replace("\r\n", "\n")
    version = (whole(form["version"]) or 0) if form["version"] else None  # what is no number is no version there is
    kept = await visit.do(KEEP_NOTES, KeepNotes(visit.path["name"], text, version))
    return back(_page_of(kept.automation), f"Kept: version {kept.version} of its notes. Runs from now on get it.")


async def enable(visit: Visit) -> Response:
    found = await visit.do(ENABLE, EnableAutomation(visit.path["name"]))
    return back(_page_of(found.scoped_name), "Enabled: it fires from now on.")


async def disable(visit: Visit) -> Response:
    found = await visit.do(DISABLE, DisableAutomation(visit.path["name"]))
    return back(_page_of(found.scoped_name), "Disabled: it does not fire; it can still be run by hand.")


async def suspend(visit: Visit) -> Response:
    found = await visit.do(SUSPEND, SuspendAutomation(visit.path["name"]))
    return back(_page_of(found.scoped_name), "Suspended: times that pass are on record, and nothing runs.")


async def resume(visit: Visit) -> Response:
    found = await visit.do(RESUME, ResumeAutomation(visit.path["name"]))
    return back(_page_of(found.scoped_name), "Resumed.")


async def new(visit: Visit) -> Response:
    return await _new(visit, Given(), None)


async def _new(visit: Visit, form: Given, wrong: LampError | None) -> Response:
    templates, rigs, logins, _ = await together(
        visit.ask(TEMPLATE_LIST, ListTemplates()), visit.ask(RIGS, ListRigs()), visit.ask(LOGINS, ListLogins()),
        visit.look(),
    )  # fmt: skip
    chosen = form.get("template") or visit.query.get("template")
    one = None if templates.error else next((found for found in templates.value if found.id == chosen), None)
    if chosen and templates.error is None and one is None:
        raise NotFound(f"There is no template `{chosen[:100]}`.", hint="Choose one of those on the page.")
    status = 200 if wrong is None else 422
    return await visit.page(
        "new.html", status=status, templates=templates, chosen=one, form=form, wrong=wrong, rigs=rigs, logins=logins
    )


async def create(visit: Visit) -> Response:
    """What was typed stays in the form if it is refused."""
    form = await visit.form()
    body = {key: form[key].strip() for key in ("name", "rig", "path") if form.get(key, "").strip()}
    try:
        made = await visit.do(CREATE, CreateAutomation(body, template=form.get("template") or None))
    except LampError as error:
        return await _new(visit, form, error)
    return back(_page_of(made.scoped_name), "Created, and disabled: look it over, then enable it.")


PAGES = (
    ("GET", "/automations", automations),
    ("POST", "/automations/{name:path}/pin", pin),
    ("POST", "/automations/{name:path}/unpin", unpin),
    ("GET", "/automations/new", new),
    ("POST", "/automations/new", create),
    ("POST", "/automations/{name:path}/run", run_now),
    ("POST", "/automations/{name:path}/test", try_it),
    ("POST", "/automations/{name:path}/notes", keep_notes),
    ("POST", "/automations/{name:path}/enable", enable),
    ("POST", "/automations/{name:path}/disable", disable),
    ("POST", "/automations/{name:path}/suspend", suspend),
    ("POST", "/automations/{name:path}/resume", resume),
    ("GET", "/automations/{name:path}", automation),
)
