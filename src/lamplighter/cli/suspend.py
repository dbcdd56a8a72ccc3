"""`lamp suspend` and `lamp resume`: the whole city at rest."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city


@click.command("suspend", cls=LampCommand, context_settings=CONTEXT)
def suspend() -> None:
    """Suspend the city in city.toml: nothing is started, nothing fires, what runs is stopped."""
    from lamplighter.app.edits import switch_city

    changed = switch_city(city(), suspended=True)
    text = "The city is suspended. `lamp resume` lifts it." if changed else "The city was suspended already."
    output.record({"suspended": True, "changed": changed}, text)


@click.command("resume", cls=LampCommand, context_settings=CONTEXT)
def resume() -> None:
    """Lift the city's suspension, and say so."""
    from lamplighter.app.edits import switch_city

    changed = switch_city(city(), suspended=False)
    text = "The city's suspension is lifted." if changed else "The city was not suspended."
    output.record({"suspended": False, "changed": changed, "lifted": ["suspension"] if changed else []}, text)


def command_for(name: str) -> click.Command:
    return suspend if name == "suspend" else resume
