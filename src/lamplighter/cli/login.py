"""`lamp login`: the logins of agent programs, and whether they work."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.logins import LoginView

COLUMNS = {"PRESET": "preset", "HOME": "home", "NODE": "node", "STATE": "state", "SINCE": Col("since", "when"),
           "UNTIL": Col("until", "when"), "WHAT IT SAID": "detail"}  # fmt: skip
_STATES = {"login": "refused", "provider_limit": "limited"}


def _list(found: "list[LoginView]", _ask: Any) -> None:
    rows = [to_json(one) for one in found]
    if not output.wants_json():
        rows = [row | {"state": _STATES.get(row["state"], row["state"])} for row in rows]
    output.table(rows, COLUMNS, empty="No run has used a login yet.")
    if not output.wants_json():
        for advice in dict.fromkeys(one.sign_in for one in found if one.sign_in):
            click.echo(f"To sign in: {advice}")


login = Subject("login", "The logins that agent runs use, and whether they work.", {"list": _list})


@login.command("check")
@click.argument("preset", required=False)
@carries_out("login.check")
def check(preset: str | None) -> None:
    """Ask the programs whether they are signed in; a refused login is tried again by the next run that waits for it.

    Exits 1 when one of them is not.
    """
    from lamplighter.services.logins import CHECK, CheckLogins

    found = do(CHECK, CheckLogins(preset))
    columns = {"PRESET": "preset", "HOME": "home", "NODE": "node", "ANSWER": "detail", "TO SIGN IN": "sign_in"}
    output.table([to_json(one) for one in found], columns, empty="No run has used a login yet.")
    if any(one.signed_in is False for one in found):
        click.get_current_context().exit(1)


def command_for(_name: str) -> click.Command:
    return login
