"""`lamp up`, `start`, `stop`, `status`: the city as a whole."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city


def _settings() -> Any:
    from lamplighter.app.settings import from_environment

    return from_environment(click.get_current_context().find_root().meta.get("lamp.city"))


def _as_typed(root: Path) -> str:
    """How to call this very program about this city from the directory the reader stands in."""
    program = "lamp" if shutil.which("lamp") else os.path.relpath(sys.argv[0])
    return program if Path.cwd() == root else f"{program} --city {os.path.relpath(root)}"


def run_foreground() -> None:
    """Run the city until Ctrl-C, `lamp stop` or SIGTERM."""
    from lamplighter.app.process import Started, run_city
    from lamplighter.kit import log

    log.set_up()

    def started(report: Started) -> None:
        name = report.config.city.name
        if output.wants_json():
            output.record({"city": name, "root": str(report.paths.root), "store": report.store}, "")
            return
        for warning in report.config.warnings:
            click.echo(f"{click.style('note:', fg='yellow')} {warning}", err=True)
        for owner in report.took_over:
            click.echo(f"Took over from process {owner.pid} on {owner.host}, which is gone.")
        click.echo(
            f"{click.style('The lamps are lit', fg='yellow', bold=True)} in city `{name}` ({report.paths.root})."
        )
        click.echo(f"Store: {report.store}")
        lamp = _as_typed(report.paths.root)
        click.echo(f"Look:  {lamp} status    (or: event tail · bead ready · doctor · --help)")
        click.echo(f"Stop:  Ctrl-C, or: {lamp} stop")

    run_city(_settings(), started=started)
    if not output.wants_json():
        click.echo("City stopped.")


@click.command("up", cls=LampCommand, context_settings=CONTEXT)
def up() -> None:
    """Run the city in the foreground: the same as `lamp start --foreground` and `lamp daemon run`."""
    run_foreground()


@click.command("start", cls=LampCommand, context_settings=CONTEXT)
@click.option("--foreground", is_flag=True, help="Stay, and keep the city running.")
def start(foreground: bool) -> None:  # noqa: FBT001  click passes flags by position's name
    """Bring the city to its wanted state once, and leave; with --foreground, stay and keep it there."""
    if foreground:
        run_foreground()
        return
    from lamplighter.app.process import run_once
    from lamplighter.kit import log

    log.set_up()
    made = run_once(_settings())
    lines = [*made.done, *(f"Problem in {name}: {text}" for name, text in made.problems.items())]
    end = "City started." if not made.problems else "City started, with problems."
    output.record({"phases": made.phases, "done": made.done, "problems": made.problems}, "\n".join([*lines, end]))
    if made.problems:
        click.get_current_context().exit(1)


@click.command("stop", cls=LampCommand, context_settings=CONTEXT)
@click.option("--within", default="30s", show_default=True, metavar="DURATION", help="How long to wait for it.")
def stop(within: str) -> None:
    """Stop the city; returns when everything is down."""
    from lamplighter.app.status import stop_city

    pid = stop_city(city(), within=within)
    text = f"City stopped (process {pid})." if pid is not None else "The city was not running."
    output.record({"stopped": True, "pid": pid}, text)


@click.command("status", cls=LampCommand, context_settings=CONTEXT)
def status() -> None:
    """How the city is: its controller, its work, what needs a person."""
    from lamplighter.app.status import city_status

    value = city_status(city())
    controller = value["controller"]
    running = controller["running"]
    state = f"running, process {controller['pid']}, since {output.local(controller['since'])}" if running else "stopped"
    output.fields(
        value,
        {
            "City": f"{value['city']} ({value['root']})",
            "Controller": state,
            "Last tick": output.local(controller["last_tick_at"]),
            "Problem": controller["config_error"],
            **{f"Problem in {name}": text for name, text in controller["problems"].items()},
            "Store": value["store"],
            "Paused": "yes: nothing fires until `lamp resume`" if value["paused"] else None,
            "Suspended": "yes: nothing starts until `lamp resume`" if value["suspended"] else None,
            "Runs": value["runs"],
            "Needs you": f"{value['attention']} runs of the last week" if value["attention"] else None,
            "Next": [f"{one['scoped_name']} {output.local(one['at'])}" for one in value["next"]],
            "Beads": value["beads"],
            "Last event": value["last_event"],
        },
    )


def command_for(name: str) -> click.Command:
    return {"up": up, "start": start, "stop": stop, "status": status}[name]
