"""`lamp suspend`, `lamp pause` and `lamp resume`: for the whole city."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city, remote, tells_problems
from lamplighter.cli.operations import carries_out, command_of, do
from lamplighter.kit.shapes import to_json
from lamplighter.services.table import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.services.agents.views import AgentView
    from lamplighter.services.automations.views import PauseView


@click.command("suspend", cls=LampCommand, context_settings=CONTEXT)
@carries_out("city.suspend")
def suspend() -> None:
    """Suspend the city in city.toml: nothing is started, nothing fires, what runs is stopped."""
    from lamplighter.services.suspension import SUSPEND, SuspendCity

    tells_problems()
    done = do(SUSPEND, SuspendCity())
    text = "The city is suspended. `lamp resume` lifts it." if done.changed else "The city was suspended already."
    output.record(to_json(done), text)
    note_left(lambda _agent: True)


def note_left(concerned: "Callable[[AgentView], bool]") -> None:
    """Say which agents go on after a suspension for want of a daemon that stops them."""
    if remote() is not None:
        return  # the daemon answered
    from lamplighter.app.inline_run import daemon_runs
    from lamplighter.services.agents.queries import LIST, ListAgents

    opened = city(tells_problems=True)
    if daemon_runs(opened):
        return
    opened.forget_config()  # the file was edited
    running = [one.name for one in do(LIST, ListAgents()) if one.state in {"running", "draining"} and concerned(one)]
    if running:
        names = ", ".join(f"`{name}`" for name in running)
        output.note(f"No daemon runs, so nobody has stopped {names}; `lamp start` stops what is suspended.")


def _paused(found: "PauseView", _ask: Any) -> None:
    output.say("Paused: nothing fires until `lamp resume`." if found.changed else "The city was paused already.")


@click.command("resume", cls=LampCommand, context_settings=CONTEXT)
@carries_out("city.resume")
def resume() -> None:
    """Lift the city's pause and suspension, and say which."""
    from lamplighter.services.suspension import RESUME, ResumeCity

    tells_problems()
    done = do(RESUME, ResumeCity())
    if remote() is None and (note := city().in_force.note) is not None:
        output.note(note)
    text = f"Lifted: {' and '.join(done.lifted)}." if done.lifted else "The city was neither paused nor suspended."
    output.record(to_json(done), text)


def command_for(name: str) -> click.Command:
    if name == "pause":
        return command_of(find("city.pause"), _paused)
    return {"suspend": suspend, "resume": resume}[name]
