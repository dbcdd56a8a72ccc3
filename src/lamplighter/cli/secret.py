"""`lamp secret`: values that programs are given and nobody is shown."""

import sys
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.secrets import KeyRotated, SecretDeleted, SecretView


def _secrets(found: "list[SecretView]", _ask: Any) -> None:
    columns = {"NAME": "name", "SET": Col("changed_at", "time"), "BY": "changed_by", "KEY": "key_id"}
    output.table([to_json(one) for one in found], columns, empty="No secrets. `lamp secret set NAME` keeps one.")


def _deleted(one: "SecretDeleted", _ask: Any) -> None:
    click.echo(f"Secret {one.name} is gone.")


def _rotated(done: "KeyRotated", _ask: Any) -> None:
    click.echo(f"{done.resealed} secret{'' if done.resealed == 1 else 's'} sealed with the key {done.key_id}.")
    for name in done.left:
        click.echo(f"{name} could not be opened and stays as it was; `lamp doctor` says why.", err=True)


secret = Subject(
    "secret",
    "Values that programs are given and nobody is shown.",
    {"list": _secrets, "delete": _deleted, "rotate-key": _rotated},
)


@secret.command("set")
@click.argument("name")
@carries_out("secret.set")
def set_secret(name: str) -> None:
    """Keep a secret, encrypted. Its value is asked for, or read from standard input; a last line end is left out.

    A variable of an agent, a configuration or an automation gets it by the value `secret:NAME`.
    """
    from lamplighter.domain.secrets import SHORTEST_MASKED
    from lamplighter.services.secrets import SET, SetSecret

    done = do(SET, SetSecret(name, given_value(f"Value of {name}")))
    if not done.masked:
        output.note(
            f"the value of {done.name} has fewer than {SHORTEST_MASKED} characters, so that it is not masked in what "
            "programs print"
        )
    if output.wants_json():
        output.fields(to_json(done), {})
        return
    click.echo(f"Secret {done.name} is kept. Refer to it as `secret:{done.name}`.")


def given_value(ask_for: str) -> str:
    """What is piped in, else what a person types without seeing it; never an argument, which other users could see."""
    if sys.stdin.isatty():
        return str(click.prompt(ask_for, hide_input=True))
    text = str(sys.stdin.read())
    return text.removesuffix("\n").removesuffix("\r")


def command_for(_name: str) -> click.Command:
    return secret
