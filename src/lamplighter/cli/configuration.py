"""`lamp configuration`: where and with what agent runs work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group
from lamplighter.domain.city.paths import remote
from lamplighter.kit.errors import UsageError

configuration = group("Where and with what agent runs work: a rig or a path, a preset, a model, an environment.")

NAME = click.argument("name")
_PLAIN = ("description", "rig", "preset", "model", "mode")
_OPTIONS = [
    click.option("--description", help="What it is for; a model chooses by it."),
    click.option("--rig", help="The rig a run works in."),
    click.option("--path", metavar="DIRECTORY", help="Where a run works, in place of a rig."),
    click.option("--preset", help="Which agent program."),
    click.option("--model", help="Which model it is asked to use."),
    click.option("--mode", metavar="[approval|plan|full_access]", help="What it may do."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of its environment; may be repeated."),
]


def described(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@configuration.command("list")
def list_configurations() -> None:
    """Every configuration: those of city.toml (source `file`) and those in the store."""
    from lamplighter.app.configuration_commands import listed

    rows = listed(city())
    shown = rows if output.wants_json() else [row | {"where": row["rig"] or row["path"]} for row in rows]
    columns = {
        "NAME": "name", "SOURCE": "source", "WORKS IN": "where", "PRESET": "preset", "MODEL": "model",
        "DESCRIPTION": "description",
    }  # fmt: skip
    output.table(shown, columns, empty="No configurations. `lamp configuration create` makes one.")


@configuration.command("show")
@NAME
def show(name: str) -> None:
    """One configuration in full, and the automations that use it."""
    from lamplighter.app.configuration_commands import shown

    value = shown(city(), name)
    headings = {key.replace("_", " ").capitalize(): one for key, one in value.items()}
    output.fields(value, headings)


@configuration.command("create")
@NAME
@described
def create(name: str, **options: Any) -> None:
    """Make a configuration in the store.

    Such as: lamp configuration create web --rig web --preset codex --description 'The web site.'
    """
    from lamplighter.app.configuration_commands import create as make

    _told(make(city(), {"name": name, **_given(options)}), "Created")


@configuration.command("edit")
@NAME
@described
@click.option("--no-env", "dropped", multiple=True, metavar="NAME", help="A variable to take out; may be repeated.")
def edit(name: str, dropped: tuple[str, ...], **options: Any) -> None:
    """Change a stored configuration: only what is named changes, and an empty text unsets."""
    from lamplighter.app.configuration_commands import edit as change

    changes = _given(options)
    if dropped:
        changes["env"] = changes.get("env", {}) | dict.fromkeys(dropped)
    if not changes:
        raise UsageError("Name what is to change.", hint="Such as --model NAME or --env NAME=VALUE.")
    _told(change(city(), name, changes), "Changed")


@configuration.command("delete")
@NAME
def delete(name: str) -> None:
    """Delete a stored configuration that no automation uses."""
    from lamplighter.app.configuration_commands import delete as remove

    remove(city(), name)
    output.record({"name": name, "deleted": True}, f"Deleted {name}.")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; a path is made absolute, but a remote address is passed on, to be refused later."""
    body = {key: options[key] for key in _PLAIN if options[key] is not None}
    path = options["path"]
    if path is not None:
        body["path"] = str(Path(path).resolve()) if path and remote(path) is None else path
    if options["env"]:
        body["env"] = dict(_pair(text) for text in options["env"])
    return body


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"`--env {text}` is not NAME=VALUE.", hint="Such as --env LANG=C.")
    return name, value


def _told(value: dict[str, Any], verb: str) -> None:
    where = value["rig"] or value["path"]
    output.record(value, f"{verb} {value['name']}{f': works in {where}' if where else ''}.")


def command_for(_name: str) -> click.Command:
    return configuration
