"""`lamp open`: the way into the web console."""

import sys
from typing import TYPE_CHECKING

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city
from lamplighter.cli.operations import carries_out, do
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("open", cls=LampCommand, context_settings=CONTEXT)
@click.option("--print", "only_print", is_flag=True, help="Only print the link, and start no browser.")
@carries_out("city.open")
def open_console(*, only_print: bool) -> None:
    """Open the web console: a link that signs a browser in as you, once, within ten minutes.

    The link is printed; where there is a desktop, the browser is started with it.
    """
    from lamplighter.services.console import OPEN, OpenConsole

    found = do(OPEN, OpenConsole())
    output.record(to_json(found), found.link)
    if not only_print and not output.wants_json() and sys.stdout.isatty() and _has_desktop(city().settings.env):
        import webbrowser

        if not webbrowser.open(found.link):
            output.note("No browser could be started; open the link yourself.")


def _has_desktop(env: "Mapping[str, str]") -> bool:
    return sys.platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def command_for(_name: str) -> click.Command:
    return open_console
