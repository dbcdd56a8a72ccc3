"""`lamp automation`: work that fires when it is due."""

from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.automation_options import definition_of, definition_options
from lamplighter.cli.base import city, group
from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError

automation = group("Work that fires when it is due: by time, condition, event, or by hand.")

NAME = click.argument("name")
PAYLOAD_HINT = 'Such as --payload \'{"branch": "main"}\'.'
RIG = click.option("--rig", help="The automation of this rig; the same as NAME:rig:RIG.")


@automation.command("list")
@click.option("--rig", help="Only those of this rig.")
def list_automations(rig: str | None) -> None:
    """Every automation: what it does, when it fires, whether it is on."""
    from lamplighter.app.automation_commands import listed

    rows = listed(city(), rig=rig)
    columns = {
        "NAME": "scoped_name", "STATE": "standing", "FIRES": "fires", "ACTION": "does", "NEXT": "next", "LAST": "last",
    }  # fmt: skip
    shown = rows if output.wants_json() else [row | _at_a_glance(row) for row in rows]
    output.table(shown, columns, empty="No automations. `lamp automation templates` shows where to start.")


@automation.command("show")
@NAME
@RIG
def show(name: str, rig: str | None) -> None:
    """One automation in full."""
    from lamplighter.app.automation_commands import shown

    value = shown(city(), scoped(name, rig))
    peek = _at_a_glance(value)
    output.fields(
        value,
        {
            "Name": value["scoped_name"],
            "Description": value["description"],
            "State": peek["standing"],
            "Why disabled": value["disabled_reason"],
            "Fires": peek["fires"],
            "Next": peek["next"],
            "Last fired": peek["last"],
            "Action": peek["does"],
            "Policies": value["policies"],
            "Source": value["path"] or value["source"],
            "Problems": value["problems"],
        },
    )


@automation.command("run")
@NAME
@RIG
@click.option("--payload", metavar="JSON", help="Data for the action, in its trigger file.")
@click.option("--key", help="A repeated request with the same key starts no second run.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 unless it succeeded.")
def run(name: str, rig: str | None, payload: str | None, key: str | None, wait: bool) -> None:  # noqa: FBT001
    """Run it now, whatever its triggers say; their times stay as they are.

    Without a running daemon the run is worked in this very process.
    """
    from lamplighter.app.inline_run import run_automation
    from lamplighter.cli.run import finish
    from lamplighter.services.automations.firing import ByHand

    opened = city()
    row, left_to_daemon = run_automation(opened, ByHand(scoped(name, rig), payload=_payload(payload), key=key))
    finish(opened, row.run.id, here=not left_to_daemon, wait=wait)


@automation.command("check")
@click.argument("name", required=False)
@RIG
def check(name: str | None, rig: str | None) -> None:
    """What is due now, and why or why not. Exits 0 when something is due, else 1."""
    from lamplighter.app.automation_commands import checked

    rows = checked(city(), None if name is None else scoped(name, rig))
    columns = {"NAME": "scoped_name", "TRIGGER": "trigger", "DUE": "due", "REASON": "reason", "NEXT": "next"}
    shown = rows
    if not output.wants_json():
        shown = [row | {"due": "yes" if row["due"] else "no", "next": output.local(row["next_due_at"])} for row in rows]
    output.table(shown, columns, empty="No automations.")
    if not any(row["due"] for row in rows):
        click.get_current_context().exit(1)


@automation.command("next")
@click.argument("name", required=False)
@RIG
@click.option("--count", default=10, show_default=True, type=click.IntRange(1, 1000), help="At most so many.")
@click.option("--days", default=366.0, show_default=True, type=click.FloatRange(min=0), help="Look so far ahead.")
def next_times(name: str | None, rig: str | None, count: int, days: float) -> None:
    """When timed automations fire next, in order. Conditions and events cannot be foretold."""
    from lamplighter.app.automation_commands import upcoming

    opened = city()
    wanted = None if name is None else scoped(name, rig)
    show_times(upcoming(opened, start=opened.clock.now(), days=days, name=wanted, limit=count))


@automation.command("explain")
@NAME
@RIG
def explain(name: str, rig: str | None) -> None:
    """Why it did or did not fire, and when it will: gate, policy, suspension, previous run."""
    from lamplighter.app.automation_commands import explained

    scoped_name = scoped(name, rig)
    sentences = list(explained(city(), scoped_name))
    output.record({"scoped_name": scoped_name, "sentences": sentences}, "\n".join(sentences))


@automation.command("history")
@NAME
@RIG
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many.")
def history(name: str, rig: str | None, limit: int) -> None:
    """Every slot and what became of it: fired, late, missed, skipped and why; newest first."""
    from lamplighter.app.automation_commands import history as found

    rows = found(city(), scoped(name, rig), limit=limit)
    columns = {
        "AT": "at", "TRIGGER": "trigger", "STATUS": "status", "REASON": "reason", "TIMES": "count", "RUN": "run",
        "ENDED": "run_state",
    }  # fmt: skip
    shown = rows if output.wants_json() else [row | {"at": output.local(row["last_at"])} for row in rows]
    output.table(shown, columns, empty="Nothing yet.")


@automation.command("create")
@click.argument("name", required=False)
@click.option("--template", metavar="ID", help="Start from a template; made disabled, for you to enable.")
@click.option("--path", type=click.Path(path_type=Path, file_okay=False), help="Where an agent works.")
@definition_options
def create(name: str | None, template: str | None, path: Path | None, **options: Any) -> None:
    """Create an automation in the store.

    Such as: lamp automation create tidy --exec 'make tidy' --daily 03:30
    """
    from lamplighter.app.automation_commands import create as make
    from lamplighter.app.automation_commands import create_from_template

    opened = city()
    if template is not None:
        value = create_from_template(opened, template, name=name, path=path, rig=options["rig"])
    elif name is None:
        raise UsageError("Give the automation a name, or name a --template.")
    else:
        body = {"name": name, **definition_of(options, path)}
        value = make(opened, body)
    _told(value, "Created")


@automation.command("edit")
@NAME
@click.option("--path", type=click.Path(path_type=Path, file_okay=False), help="Where an agent works.")
@definition_options
def edit(name: str, path: Path | None, **options: Any) -> None:
    """Change a stored automation: only what is named changes."""
    from lamplighter.app.automation_commands import edit as change

    rig = options.pop("rig")
    changes = definition_of({**options, "rig": None}, path)
    if not changes:
        raise UsageError("Name what is to change.", hint="Such as --cron '0 9 * * mon' or --set timeout=10m.")
    _told(change(city(), scoped(name, rig), changes), "Changed")


@automation.command("enable")
@NAME
@RIG
def enable(name: str, rig: str | None) -> None:
    """Let it fire; its count of failures starts anew."""
    from lamplighter.app.automation_commands import switch

    _told(switch(city(), scoped(name, rig), enabled=True), "Enabled")


@automation.command("disable")
@NAME
@RIG
def disable(name: str, rig: str | None) -> None:
    """Keep it from firing; it can still be run by hand."""
    from lamplighter.app.automation_commands import switch

    _told(switch(city(), scoped(name, rig), enabled=False), "Disabled")


@automation.command("suspend")
@NAME
@RIG
def suspend(name: str, rig: str | None) -> None:
    """Hold it back for a while: times that pass are on record, events wait, and nobody can run it."""
    _suspend(scoped(name, rig), suspended=True)


@automation.command("resume")
@NAME
@RIG
def resume(name: str, rig: str | None) -> None:
    """Lift its suspension."""
    _suspend(scoped(name, rig), suspended=False)


@automation.command("delete")
@NAME
@RIG
def delete(name: str, rig: str | None) -> None:
    """Delete a stored automation; its runs stay in history."""
    from lamplighter.app.automation_commands import delete as remove

    scoped_name = scoped(name, rig)
    remove(city(), scoped_name)
    output.record({"scoped_name": scoped_name, "deleted": True}, f"Deleted {scoped_name}.")


@automation.command("templates")
def templates() -> None:
    """Starting points: `lamp automation create NAME --template ID --path DIR`."""
    from lamplighter.app.automation_commands import templates as found

    output.table(found(), {"ID": "id", "FIRES": "badge", "DESCRIPTION": "description"}, empty="")


@automation.command("export")
@NAME
@RIG
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="Write it there instead of printing it.")
def export(name: str, rig: str | None, to: Path | None) -> None:
    """The automation.toml that says the same."""
    from lamplighter.app.automation_commands import exported

    text = exported(city(), scoped(name, rig))
    if to is None:
        output.record({"toml": text}, text.rstrip("\n"))
        return
    if to.exists():
        raise UsageError(f"{to} exists already.", hint="Choose another file; nothing was written.")
    to.write_text(text, encoding="utf-8")
    output.record({"toml": text, "file": str(to)}, f"Wrote {to}.")


@automation.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--name", help="Its name; the file's directory or name when left out.")
@click.option("--rig", help="The rig it belongs to.")
def import_(file: Path, name: str | None, rig: str | None) -> None:
    """A stored automation from an automation.toml."""
    from lamplighter.app.automation_commands import imported

    _told(imported(city(), file, name=name, rig=rig), "Imported")


def _suspend(scoped_name: str, *, suspended: bool) -> None:
    from lamplighter.app.automation_commands import suspend as switch

    changed = switch(city(), scoped_name, suspended=suspended)
    word = "suspended" if suspended else "not suspended"
    text = f"{scoped_name} is {word} now." if changed else f"{scoped_name} was {word} already."
    output.record({"scoped_name": scoped_name, "suspended": suspended, "changed": changed}, text)


def scoped(name: str, rig: str | None) -> str:
    return f"{name}:rig:{rig}" if rig and ":rig:" not in name else name


def show_times(rows: list[dict[str, Any]]) -> None:
    shown = rows if output.wants_json() else [row | {"when": row["local"].replace("T", " ")} for row in rows]
    columns = {"WHEN": "when", "ZONE": "zone", "NAME": "scoped_name", "TRIGGER": "trigger"}
    output.table(shown, columns, empty="Nothing timed is due in that span.")


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


def _told(value: dict[str, Any], verb: str) -> None:
    peek = _at_a_glance(value)
    text = f"{verb} {value['scoped_name']}: {peek['fires']} ({peek['standing']})."
    if not value["enabled"]:
        text += f"\nIt fires once enabled: `lamp automation enable {value['scoped_name']}`."
    output.record(value, text)


def _at_a_glance(value: dict[str, Any]) -> dict[str, str]:
    triggers = value["triggers"]
    times = [one["next_due_at"] for one in triggers if one.get("next_due_at")]
    last = [one["last_fired_at"] for one in triggers if one.get("last_fired_at")]
    return {
        "standing": _standing(value),
        "fires": "; ".join(one.get("human_schedule") or one["kind"] for one in triggers),
        "does": _action(value["action"]),
        "next": output.local(min(times)) if times and _standing(value) == "on" else "",
        "last": output.local(max(last)) if last else "",
    }


def _standing(value: dict[str, Any]) -> str:
    if value["problems"]:
        return "broken"
    if value.get("skipped"):
        return "skipped"
    if value.get("suspended"):
        return "suspended"
    return "on" if value["enabled"] else "disabled"


def _action(action: dict[str, Any] | None) -> str:
    if action is None:
        return ""
    kind = action["kind"]
    keys = {"exec": ("command", "exec"), "formula": ("formula", "name"), "agent": ("prompt",)}[kind]
    first = " ".join(str(next((action[key] for key in keys if action.get(key)), "")).split())
    return f"{kind}: {first[:40]}{'…' if len(first) > 40 else ''}"


def command_for(_name: str) -> click.Command:
    return automation
