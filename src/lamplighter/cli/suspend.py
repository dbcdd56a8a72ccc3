"""`lamp suspend`, `lamp pause` and `lamp resume`: for the whole city."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city


@click.command("suspend", cls=LampCommand, context_settings=CONTEXT)
def suspend() -> None:
    """Suspend the city in city.toml: nothing is started, nothing fires, what runs is stopped."""
    from lamplighter.app.edits import suspend_city

    changed = suspend_city(city(tells_problems=True))
    text = "The city is suspended. `lamp resume` lifts it." if changed else "The city was suspended already."
    output.record({"suspended": True, "changed": changed}, text)


@click.command("pause", cls=LampCommand, context_settings=CONTEXT)
def pause() -> None:
    """Stop all firing at once, and start no run; those under way go on. `lamp resume` lifts it."""
    from lamplighter.app.automation_commands import pause as pause_city

    changed = pause_city(city())
    text = "Paused: nothing fires until `lamp resume`." if changed else "The city was paused already."
    output.record({"paused": True, "changed": changed}, text)


@click.command("resume", cls=LampCommand, context_settings=CONTEXT)
def resume() -> None:
    """Lift the city's pause and suspension, and say which."""
    from lamplighter.app.edits import resume_city

    opened = city(tells_problems=True)
    lifted = resume_city(opened)
    if opened.in_force.note is not None:
        output.note(opened.in_force.note)
    text = f"Lifted: {' and '.join(lifted)}." if lifted else "The city was neither paused nor suspended."
    output.record({"paused": False, "suspended": False, "lifted": lifted}, text)


def command_for(name: str) -> click.Command:
    return {"suspend": suspend, "resume": resume, "pause": pause}[name]
