"""`lamp daemon`: the city's process."""

import click

from lamplighter.cli.base import group
from lamplighter.cli.control import run_foreground

daemon = group("The city's process.")


@daemon.command("run")
def run() -> None:
    """Run the city in the foreground: the same as `lamp up`."""
    run_foreground()


def command_for(_name: str) -> click.Command:
    return daemon
