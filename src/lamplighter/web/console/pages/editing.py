"""The editor of automations: a new one, a stored one, and what it would be before it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from lamplighter.domain.sessions.presets.catalogue import PRESETS
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.services.automations.editing import DefinitionInvalid
from lamplighter.services.automations.operations import (
    CREATE,
    DELETE,
    EDIT,
    CreateAutomation,
    DeleteAutomation,
    EditAutomation,
)
from lamplighter.services.automations.previewing import PREVIEW, PreviewAutomation, PreviewView
from lamplighter.services.automations.queries import EXPORT, SHOW, ExportAutomation, ShowAutomation
from lamplighter.services.automations.source import SOURCE, ShowSource
from lamplighter.services.automations.trying import TRY, TriedView, TryAutomation
from lamplighter.services.automations.views import AutomationView
from lamplighter.services.configurations import LIST as CONFIGURATIONS
from lamplighter.services.configurations import ListConfigurations
from lamplighter.services.connections import LIST as CONNECTIONS
from lamplighter.services.connections import ListConnections
from lamplighter.services.guarding import Guard
from lamplighter.services.rigs import LIST as RIGS
from lamplighter.services.rigs import ListRigs
from lamplighter.web.console import editor
from lamplighter.web.console.visit import SURFACE, Answer, Given, Visit, back, together
from lamplighter.web.errors import status_of

OWN = "/automations/new/own"
EMPTY = Given({"action": "exec", "t0.kind": "daily", "t0.daily.time": "09:00", "enabled": "yes", "overlap": "skip"})


def page_of(name: str) -> str:
    return f"/automations/{quote(name, safe=':')}"


@dataclass(frozen=True)
class Editing:
    """The automation that is edited; None for a new one. `version` is the one that was read."""

    one: AutomationView | None = None
    version: str = ""

    @property
    def name(self) -> str | None:
        return None if self.one is None else self.one.scoped_name

    @property
    def action(self) -> str:
        return OWN if self.one is None else f"{page_of(self.one.scoped_name)}/edit"


async def new(visit: Visit) -> Response:
    return await _editor(visit, Editing(), EMPTY, fresh=True)


async def edit(visit: Visit) -> Response:
    """Raises AutomationUnknown. One that a file defines is shown, and cannot be changed here."""
    editing = await _read(visit)
    assert editing.one is not None  # noqa: S101  it was read
    return await _editor(visit, editing, editor.values_of(editing.one))


async def _read(visit: Visit) -> Editing:
    ask = ShowAutomation(visit.path["name"])
    shown = await visit.do(SHOW, ask)
    outcome = await visit.city.guarded(SHOW, ask, visit.actor, surface=SURFACE)
    return Editing(shown, outcome.version or "")


async def preview_new(visit: Visit) -> Response:
    return await _editor(visit, Editing(), await visit.form())


async def preview_edit(visit: Visit) -> Response:
    form = await visit.form()
    editing = await _read(visit)
    return await _editor(visit, Editing(editing.one, form["version"]), form)


async def try_new(visit: Visit) -> Response:
    form = await visit.form()
    asked = editor.asked_of(form, is_new=True)
    tried = await visit.do(TRY, TryAutomation(changes=asked.body))
    return await _editor(visit, Editing(), form, tried=Answer(tried))


async def try_edit(visit: Visit) -> Response:
    """What the form says is tried, not what is stored."""
    form = await visit.form()
    editing = await _read(visit)
    asked = editor.asked_of(form, is_new=False)
    tried = await visit.do(TRY, TryAutomation(editing.name, changes=asked.body))
    return await _editor(visit, Editing(editing.one, form["version"]), form, tried=Answer(tried))


async def create(visit: Visit) -> Response:
    """What was typed stays in the form if it is refused."""
    form = await visit.form()
    asked = editor.asked_of(form, is_new=True)
    try:
        made = await visit.do(CREATE, CreateAutomation(asked.body))
    except LampError as error:
        return await _editor(visit, Editing(), form, error)
    said = "Created: it fires from now on." if made.enabled else "Created, and disabled: enable it when it is right."
    return back(page_of(made.scoped_name), said)


async def save(visit: Visit) -> Response:
    """Refused if somebody else has changed it since it was read."""
    form = await visit.form()
    name = visit.path["name"]
    guard = Guard(versions=frozenset({form["version"]} if form["version"] else {"*"}))
    ask = EditAutomation(name, None, editor.asked_of(form, is_new=False).body)
    try:
        outcome = await visit.city.guarded(EDIT, ask, visit.actor, surface=SURFACE, guard=guard)
    except LampError as error:
        editing = await _read(visit)
        return await _editor(visit, Editing(editing.one, form["version"]), form, error)
    return back(page_of(outcome.answer.scoped_name), "Changed; runs under way keep what they began with.")


async def delete(visit: Visit) -> Response:
    form = await visit.form()
    if form["sure"] != "yes":
        raise UsageError("Nothing was deleted.", hint="Tick the box first: a deleted automation does not come back.")
    done = await visit.do(DELETE, DeleteAutomation(visit.path["name"]))
    return back("/automations", f"Deleted {done.scoped_name}; its runs stay in history.")


async def _editor(
    visit: Visit,
    editing: Editing,
    values: Given,
    wrong: LampError | None = None,
    *,
    fresh: bool = False,
    tried: Answer[TriedView] | None = None,
) -> Response:
    """`fresh`: nobody has typed anything yet, so that nothing can be wrong. `tried` is what a dry run found."""
    asked = editor.asked_of(values, is_new=editing.one is None)
    read_only = editing.one is not None and editing.one.source == "file"
    found, stored, rigs, configurations, connections, source, _ = await together(
        _nothing() if read_only else visit.ask(PREVIEW, PreviewAutomation(asked.body, editing.name)),
        visit.ask(EXPORT, ExportAutomation(editing.name)) if editing.name else _nothing(),
        visit.ask(RIGS, ListRigs()),
        visit.ask(CONFIGURATIONS, ListConfigurations()),
        visit.ask(CONNECTIONS, ListConnections()),
        visit.ask(SOURCE, ShowSource(editing.name)) if read_only and editing.name else _nothing(),
        visit.look(),
    )
    preview: PreviewView | None = found.found
    problems = asked.problems((one.key, one.message) for one in preview.problems) if preview and not fresh else {}
    if isinstance(wrong, DefinitionInvalid):
        problems = asked.problems((one.key, one.message) for one in wrong.problems) | problems
    return await visit.page(
        "editor.html",
        status=200 if wrong is None else 422 if isinstance(wrong, UsageError) else status_of(wrong),
        editing=editing,
        read_only=read_only,
        values=values,
        triggers=editor.triggers_of(values),
        kinds=_kinds(values, connected=bool(connections.found)),
        hooks=[(one, visit.address_of(one.path)) for one in connections.found or ()],
        source=source,
        tried=tried,
        address=editing.action,
        general=editor.GENERAL,
        actions=editor.ACTIONS,
        policies=editor.POLICIES,
        preview=found,
        problems=problems,
        difference=_difference(stored, preview),
        toml=stored if read_only else Answer(),
        names={
            "rig": [] if rigs.error else [one.name for one in rigs.value],
            "agent.preset": sorted(PRESETS),
            "agent.fallback_preset": sorted(PRESETS),
            "agent.configuration": [] if configurations.error else [one.name for one in configurations.value],
            **{
                f"t{place}.webhook.connection": [one.name for one in connections.found or ()]
                for place in range(editor.MOST_TRIGGERS)
            },
        },
        wrong=wrong,
        fresh=fresh,
    )


def _kinds(values: Given, *, connected: bool) -> dict[str, str]:
    """What a trigger can be; one that takes deliveries needs a connection, which is made elsewhere."""
    kept = {values[f"t{place}.kind"] for place in range(editor.MOST_TRIGGERS)}
    every = connected or "webhook" in kept
    return {kind: words for kind, (words, _) in editor.TRIGGERS.items() if kind != "webhook" or every}


def _difference(stored: Answer[Any], preview: PreviewView | None) -> Sequence[tuple[str, str]]:
    """What would change of its file, line by line."""
    if stored.found is None or preview is None or preview.toml is None:
        return []
    lines = list(unified_diff(stored.value.toml.splitlines(), preview.toml.splitlines(), n=1, lineterm=""))[2:]
    looks = {"+": "add", "-": "del", "@": "hunk"}
    return [(looks.get(line[:1], "same"), line) for line in lines]


async def _nothing() -> Answer[Any]:
    return Answer()


PAGES = (
    ("GET", OWN, new),
    ("POST", OWN, create),
    ("POST", f"{OWN}/preview", preview_new),
    ("POST", f"{OWN}/test", try_new),
    ("GET", "/automations/{name:path}/edit", edit),
    ("POST", "/automations/{name:path}/edit", save),
    ("POST", "/automations/{name:path}/edit/preview", preview_edit),
    ("POST", "/automations/{name:path}/edit/test", try_edit),
    ("POST", "/automations/{name:path}/delete", delete),
)
