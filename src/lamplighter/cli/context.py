"""`lamp context`: cities on other machines, kept by name with their addresses and tokens."""

import sys

import click

from lamplighter.app import contexts
from lamplighter.cli import output
from lamplighter.cli.base import group, named_city, settings
from lamplighter.kit.errors import UsageError

context = group("Cities on other machines, by name; kept with their tokens in a file that only you can read.")
ENDING = 4
"""So much of a token is shown."""


@context.command("add")
@click.argument("name")
@click.argument("address", metavar="URL")
@click.option("--use", "used", is_flag=True, help="Also use it from now on.")
def add(name: str, address: str, *, used: bool) -> None:
    """Keep a city on another machine as NAME, with a token: of --token-file, `--token -`, LAMP_TOKEN, or typed in."""
    from lamplighter.client.transport import checked_address, checked_token

    one = contexts.Context(checked_address(address), checked_token(_token()))
    after = contexts.change(settings().env, lambda before: before.with_one(name, one))
    if used:
        after = contexts.change(settings().env, lambda before: before.using(name))
    more = "it is in use" if after.current == name else f"`lamp context use {name}` has every command ask that city"
    output.record(_told(name, one, after), f"Added {name}. `lamp --context {name} status` tries it; {more}.")


def _token() -> str:
    found = contexts.token_of(named_city(), settings().env)
    if found:
        return found
    if not sys.stdin.isatty():
        raise UsageError("There is no token to keep.", hint="Pass --token-file FILE or `--token -`, or set LAMP_TOKEN.")
    typed: str = click.prompt("Token", hide_input=True, err=True)
    return typed.strip()


@context.command("list")
def list_contexts() -> None:
    """Those there are; of tokens only the last characters are shown."""
    found = contexts.read(settings().env)
    rows = [_told(name, one, found) for name, one in sorted(found.contexts.items())]
    if not output.wants_json():
        rows = [row | {"in_use": "yes" if row["in_use"] else "", "token": f"…{row['ending']}"} for row in rows]
    columns = {"NAME": "name", "ADDRESS": "url", "TOKEN": "token", "IN USE": "in_use"}
    output.table(rows, columns, empty="No contexts. `lamp context add NAME URL` keeps one.")


@context.command("use")
@click.argument("name")
def use(name: str) -> None:
    """Let every command be about the city NAME, unless it names another; `local` goes back to this machine."""
    after = contexts.change(settings().env, lambda before: before.using(name))
    told = "Commands are about the city around where you stand, on this machine."
    if after.current is not None:
        told = f"Commands are about {name} ({after.named(name).url}). `lamp context use local` goes back."
    output.record({"in_use": after.current}, told)


@context.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget a city and its token; the token itself holds until `lamp token revoke`."""
    before = contexts.read(settings().env)
    contexts.change(settings().env, lambda found: found.without(name))
    back = " Commands are about cities on this machine again." if before.current == name else ""
    output.record({"name": name}, f"Removed {name}.{back}")


def _told(name: str, one: contexts.Context, found: contexts.Contexts) -> dict[str, object]:
    return {"name": name, "url": one.url, "ending": one.token[-ENDING:], "in_use": found.current == name}


def command_for(_name: str) -> click.Command:
    return context
