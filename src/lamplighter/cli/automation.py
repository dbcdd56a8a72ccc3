"""`lamp automation`: work that fires when it is due."""

import sys
from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.automation_asking import completed, with_mode
from lamplighter.cli.automation_options import definition_of, definition_options, whole_path
from lamplighter.cli.automation_views import (
    listed,
    listed_pins,
    show_times,
    show_trial,
    shown,
    shown_cursor,
    shown_history,
    shown_notes,
    tell_deleted,
    tell_pinned,
    tell_suspension,
    tell_unpinned,
    tells,
)
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import Whole
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.domain.automations.spoken_reasons import said
from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

NAME = click.argument("name", shell_complete=names("automation"))
PAYLOAD_HINT = 'Such as --payload \'{"branch": "main"}\'.'
RIG = click.option("--rig", help="The automation of this rig; the same as NAME:rig:RIG.", shell_complete=names("rig"))


automation = Subject(
    "automation",
    "Work that fires when it is due: by time, condition, event, or by hand.",
    {
        "list": listed, "show": shown, "next": show_times, "explain": output.sentences, "history": shown_history,
        "enable": tells("Enabled"), "disable": tells("Disabled"), "suspend": tell_suspension, "resume": tell_suspension,
        "delete": tell_deleted, "notes": shown_notes, "cursor": shown_cursor,
        "pin": tell_pinned, "unpin": tell_unpinned, "pins": listed_pins,
    },
)  # fmt: skip


@automation.command("run")
@NAME
@RIG
@click.option("--payload", metavar="JSON", help="Data for the action, in its trigger file.")
@click.option("--key", help="A repeated request with the same key starts no second run.")
@click.option("--wait", is_flag=True, help="Show what it prints, to its end or that of its last retry; exit 1 if bad.")
@click.option("--verbose", "-v", is_flag=True, help="With --wait: also each step of the run.")
@carries_out("automation.run")
def run(name: str, rig: str | None, payload: str | None, key: str | None, *, wait: bool, verbose: bool) -> None:
    """Run it now, whatever its triggers say; their times stay as they are.

    Without a running daemon the run is worked in this very process.
    """
    from lamplighter.cli.run_following import fire
    from lamplighter.services.automations.operations import RUN_AUTOMATION, RunAutomation

    ask = RunAutomation(name, rig, payload=_payload(payload), key=key)
    fire(RUN_AUTOMATION, ask, wait=wait, verbose=verbose)


@automation.command("check")
@click.argument("name", required=False, shell_complete=names("automation"))
@RIG
@carries_out("automation.check")
def check(name: str | None, rig: str | None) -> None:
    """What is due now, and why or why not. Exits 0 when something is due, else 1."""
    from lamplighter.services.automations.queries import CHECK, CheckAutomations

    found = do(CHECK, CheckAutomations(name, rig))
    rows = [to_json(one) for one in found]
    columns = {
        "NAME": "scoped_name", "TRIGGER": "trigger", "DUE": Col("due", "state"), "NEXT": Col("next_due_at", "when"),
        "REASON": "reason",
    }  # fmt: skip
    if not output.wants_json():
        rows = [row | {"due": "yes" if row["due"] else "no", "reason": said(row["reason"])} for row in rows]
    output.table(rows, columns, empty="No automations.")
    if not any(one.due for one in found):
        click.get_current_context().exit(1)


@automation.command("create")
@click.argument("name", required=False)
@click.option("--template", metavar="ID", help="Start from a template; made disabled, for you to enable.")
@click.option("--path", metavar="DIRECTORY", help="Where an agent works.")
@definition_options
@carries_out("automation.create")
def create(name: str | None, template: str | None, path: str | None, **options: Any) -> None:
    """Create an automation; on a terminal it asks for what is left out.

    Such as: lamp automation create tidy --exec 'make tidy' --daily 03:30
    """
    from lamplighter.services.automations.operations import CREATE, CreateAutomation, ModeMissing

    body = definition_of(options, path if template is None else None)
    if name is not None:
        body = {"name": name, **body}
    if template is None:
        body = completed(body)
    if template is not None and path is not None:
        body["path"] = whole_path(path)
    ask = CreateAutomation(body, template)
    try:
        made = do(CREATE, ask)
    except UsageError as error:  # one from another machine has the name of its class only
        if type(error).__name__ != ModeMissing.__name__ or not sys.stdin.isatty() or output.wants_json():
            raise
        made = do(CREATE, CreateAutomation(with_mode(body, error.message.splitlines()[1:]), template))
    tells("Created")(made, None)


@automation.command("edit")
@NAME
@click.option("--path", metavar="DIRECTORY", help="Where an agent works.")
@definition_options
@carries_out("automation.edit")
def edit(name: str, path: str | None, **options: Any) -> None:
    """Change a stored automation: only what is named changes."""
    from lamplighter.services.automations.operations import EDIT, EditAutomation

    rig = options.pop("rig")
    changes = definition_of({**options, "rig": None}, path)
    if not changes:
        raise UsageError("Name what is to change.", hint="Such as --cron '0 9 * * mon' or --set timeout=10m.")
    tells("Changed")(do(EDIT, EditAutomation(name, rig, changes)), None)


@automation.command("preview")
@click.argument("name", required=False)
@click.option(
    "--of", metavar="NAME", help="The stored automation that it would change.", shell_complete=names("automation")
)
@click.option("--path", metavar="DIRECTORY", help="Where an agent works.")
@click.option("--count", default=5, type=Whole(1, 100), help="At most so many times.")
@definition_options
@carries_out("automation.preview")
def preview(name: str | None, of: str | None, path: str | None, count: int, **options: Any) -> None:
    """What an automation would be, and when it would fire; nothing is stored. Exits 1 for one that is not right.

    Such as: lamp automation preview tidy --exec 'make tidy' --daily 03:30
    """
    from lamplighter.services.automations.previewing import PREVIEW, PreviewAutomation

    body = definition_of(options, path)
    found = do(PREVIEW, PreviewAutomation(body if name is None else {"name": name, **body}, of, count))
    if output.wants_json():
        output.record(to_json(found), "")
    else:
        for problem in found.problems:
            click.echo(f"{problem.key}: {problem.message}")
        for trigger in found.triggers:
            click.echo(trigger.human_schedule)
        for one in found.next:
            click.echo(f"  {one.local.replace('T', ' ')} {one.zone}")
        click.echo(f"\n{found.toml}" if found.toml else "", nl=False)
    if found.problems:
        click.get_current_context().exit(1)


@automation.command("test")
@NAME
@RIG
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Try this value in place of the stored one.")
@carries_out("automation.test")
def test(name: str, rig: str | None, changes: tuple[str, ...]) -> None:
    """Try it without firing it: its precheck and the commands of its conditions are run once, and its filters judge
    what came in lately. Exits 1 where something keeps it from firing.
    """
    from lamplighter.services.automations.trying import TRY, TryAutomation

    found = do(TRY, TryAutomation(name, rig, definition_of({"extra": changes}, None)))
    show_trial(found)
    if found.problems or any(not one.passes for one in found.commands):
        click.get_current_context().exit(1)


@automation.command("templates")
@carries_out("automation.templates")
def templates() -> None:
    """Starting points: `lamp automation create NAME --template ID --path DIR`."""
    from lamplighter.services.automations.queries import ListTemplates, list_templates

    # They are part of the program: this command needs no city.
    found = [to_json(one) for one in list_templates(None, ListTemplates(), None)]
    output.table(found, {"ID": "id", "FIRES": "badge", "DESCRIPTION": "description"}, empty="")


@automation.command("export")
@NAME
@RIG
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="Write it there instead of printing it.")
@carries_out("automation.export")
def export(name: str, rig: str | None, to: Path | None) -> None:
    """The automation.toml that says the same."""
    from lamplighter.services.automations.queries import EXPORT, ExportAutomation

    found = do(EXPORT, ExportAutomation(name, rig))
    if to is None:
        output.record(to_json(found), found.toml.rstrip("\n"))
        return
    if to.exists():
        raise UsageError(f"{to} exists already.", hint="Choose another file; nothing was written.")
    to.write_text(found.toml, encoding="utf-8")
    output.record(to_json(found) | {"file": str(to)}, f"Wrote {to}.")


@automation.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", help="Its name; the file's directory or name when left out.")
@click.option("--rig", help="The rig it belongs to.")
@click.option("--disabled", is_flag=True, help="Do not let it fire yet.")
@carries_out("automation.import")
def import_(file: Path, name: str | None, rig: str | None, *, disabled: bool) -> None:
    """A stored automation from an automation.toml; it fires at once unless the file or --disabled says otherwise."""
    from lamplighter.services.automations.operations import IMPORT, ImportAutomation, NotToml

    try:
        text = file.read_bytes().decode("utf-8-sig")
    except ValueError as error:
        raise NotToml(str(file), error) from error
    named = name or (file.parent.name if file.name == "automation.toml" else file.stem)
    tells("Imported")(do(IMPORT, ImportAutomation(text, named, rig, str(file), disabled)), None)


def _payload(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json_text.parse(text)
    except ValueError as error:
        raise UsageError(f"The payload is not JSON that can be used: {error}.", hint=PAYLOAD_HINT) from error
    if not isinstance(value, dict):
        raise UsageError("The payload is not a JSON object.", hint=PAYLOAD_HINT)
    return value


def command_for(_name: str) -> click.Command:
    return automation
