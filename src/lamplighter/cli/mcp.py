"""`lamp mcp`: the city's tools for an agent program that starts its servers itself."""

import click

from lamplighter.cli.base import LampCommand, city


@click.command("mcp", cls=LampCommand)
def mcp() -> None:
    """Serve the city's tools over standard input and output, by the Model Context Protocol, until the input ends."""
    from lamplighter.app.tools_over_stdio import serve_tools

    serve_tools(city())


def command_for(_name: str) -> click.Command:
    return mcp
