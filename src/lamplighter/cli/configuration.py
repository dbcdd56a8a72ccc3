"""`lamp configuration`: where and with what agent runs work."""

from collections.abc import Callable
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.automation_options import whole_path
from lamplighter.cli.completing import names
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.configurations import ConfigurationDeleted, ConfigurationView


def _list(found: "list[ConfigurationView]", _ask: Any) -> None:
    rows = [to_json(one) | {"where": one.rig or one.path} for one in found]
    columns = {
        "NAME": "name", "WORKS IN": Col("where", "path"), "PRESET": "preset", "MODEL": "model",
        "DESCRIPTION": "description", "SOURCE": Col("source", "word", spare=1),
    }  # fmt: skip
    output.table(rows, columns, empty="No configurations. `lamp configuration create` makes one.")


def _deleted(gone: "ConfigurationDeleted", _ask: Any) -> None:
    click.echo(f"Deleted {gone.name}.")


configuration = Subject(
    "configuration",
    "Where and with what agent runs work: a rig or a path, a preset, a model, an environment.",
    {"list": _list, "delete": _deleted},
)
NAME = click.argument("name", shell_complete=names("configuration"))
_PLAIN = (
    "description", "rig", "preset", "model", "mode", "effort", "home", "fallback_preset", "fallback_model",
)  # fmt: skip
_OPTIONS = [
    click.option("--description", help="What it is for; a model chooses by it."),
    click.option("--rig", help="The rig a run works in.", shell_complete=names("rig")),
    click.option("--path", metavar="DIRECTORY", help="Where a run works, in place of a rig."),
    click.option("--preset", help="Which agent program.", shell_complete=names("preset")),
    click.option("--model", help="Which model it is asked to use."),
    click.option("--mode", metavar="[approval|plan|full_access]", help="What it may do."),
    click.option("--effort", metavar="[low|medium|high|max]", help="How hard the model shall think."),
    click.option("--home", metavar="DIRECTORY", help="Keeps a login of its own for the program."),
    click.option("--fallback-preset", "fallback_preset", help="The program while its provider's limit is reached."),
    click.option("--fallback-model", "fallback_model", help="The model while its provider's limit is reached."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of its environment; may be repeated."),
]


def described(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@configuration.command("create")
@NAME
@described
@carries_out("configuration.create")
def create(name: str, **options: Any) -> None:
    """Make a configuration in the store.

    Such as: lamp configuration create web --rig web --preset codex --description 'The web site.'
    """
    from lamplighter.services.configurations import CREATE, CreateConfiguration

    _told(do(CREATE, CreateConfiguration({"name": name, **_given(options)})), "Created")


@configuration.command("edit")
@NAME
@described
@click.option("--no-env", "dropped", multiple=True, metavar="NAME", help="A variable to take out; may be repeated.")
@carries_out("configuration.edit")
def edit(name: str, dropped: tuple[str, ...], **options: Any) -> None:
    """Change a stored configuration: only what is named changes, and an empty text unsets."""
    from lamplighter.services.configurations import EDIT, EditConfiguration

    changes = _given(options)
    if dropped:
        changes["env"] = changes.get("env", {}) | dict.fromkeys(dropped)
    if not changes:
        raise UsageError("Name what is to change.", hint="Such as --model NAME or --env NAME=VALUE.")
    _told(do(EDIT, EditConfiguration(name, changes)), "Changed")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; a path is made absolute, but a remote address is passed on, to be refused later."""
    body = {key: options[key] for key in _PLAIN if options[key] is not None}
    path = options["path"]
    if path is not None:
        body["path"] = whole_path(path) if path else path
    if options["env"]:
        body["env"] = dict(_pair(text) for text in options["env"])
    return body


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"`--env {text}` is not NAME=VALUE.", hint="Such as --env LANG=C.")
    return name, value


def _told(made: "ConfigurationView", verb: str) -> None:
    where = made.rig or made.path
    output.record(to_json(made), f"{verb} {made.name}{f': works in {where}' if where else ''}.")


def command_for(_name: str) -> click.Command:
    return configuration
