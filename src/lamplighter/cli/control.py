"""`lamp up`, `start`, `stop`, `restart`, `status`: the city as a whole."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.process import Pass


def settings() -> Any:
    from lamplighter.app.settings import from_environment

    return from_environment(click.get_current_context().find_root().meta.get("lamp.city"))


def _as_typed(root: Path) -> str:
    """How to call this program for this city from the working directory."""
    import shutil

    program = "lamp" if shutil.which("lamp") else os.path.relpath(sys.argv[0])
    return program if Path.cwd() == root else f"{program} --city {os.path.relpath(root)}"


def run_foreground() -> None:
    """Run the city until Ctrl-C, `lamp stop` or SIGTERM."""
    from lamplighter.app.daemon_log import log_stream
    from lamplighter.app.process import Started, run_city
    from lamplighter.kit import log
    from lamplighter.kit.clock import SystemClock

    chosen = settings()
    log.set_up(log_stream(chosen))

    def started(report: Started) -> None:
        name = report.config.city.name
        if output.wants_json():
            told = {"city": name, "root": str(report.paths.root), "store": report.store, "next": report.peek.next}
            output.record(told, "")
            return
        for warning in report.config.warnings:
            click.echo(f"{click.style('note:', fg='yellow')} {warning}", err=True)
        for owner in report.took_over:
            click.echo(f"Took over from process {owner.pid} on {owner.host}, which is gone.")
        click.echo(
            f"{click.style('The lamps are lit', fg='yellow', bold=True)} in city `{name}` ({report.paths.root})."
        )
        click.echo(f"Store: {report.store}")
        held = report.peek.paused or report.config.city.workspace.suspended
        coming = "nothing, until `lamp resume`" if held else output.soon(report.peek.next, SystemClock().now())
        if coming:
            click.echo(f"Next:  {coming}")
        lamp = _as_typed(report.paths.root)
        click.echo(f"Look:  {lamp} status    (or: event tail · bead ready · doctor · --help)")
        click.echo(f"Stop:  Ctrl-C, or: {lamp} stop")

    run_city(chosen, started=lambda report: _if_written(lambda: started(report)), warn=output.note)
    if not output.wants_json():
        _if_written(lambda: click.echo("City stopped."))


def _if_written(say: Callable[[], None]) -> None:
    """Print; if the reader is gone or the disk is full, the output is dropped and the city keeps running."""
    try:
        say()
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else flushing the buffer fails again later


@click.command("up", cls=LampCommand, context_settings=CONTEXT)
def up() -> None:
    """Run the city in the foreground: the same as `lamp start --foreground` and `lamp daemon run`."""
    run_foreground()


@click.command("start", cls=LampCommand, context_settings=CONTEXT)
@click.option("--foreground", is_flag=True, help="Stay, and keep the city running.")
def start(foreground: bool) -> None:  # noqa: FBT001  click passes flags by position's name
    """Bring the city's agents to their wanted state once, and leave; with --foreground, stay and keep them there.

    One pass starts what is missing, restarts what runs with old settings, stops what is surplus or unknown, and says
    what it left and why. It fires no automation, works on no run and ends no agent for its silence.
    """
    if foreground:
        run_foreground()
        return
    _start_once()


def _start_once() -> None:
    import logging

    from lamplighter.app.process import run_once
    from lamplighter.kit import log

    log.set_up(level=logging.WARNING)
    made = run_once(settings(), warn=output.note)
    lines = [
        *map(str, made.done),
        *(f"Left agent `{one.agent}` {one.state}{f': {one.reason}' if one.reason else ''}." for one in made.left),
        *(f"Problem in {name}: {text}" for name, text in made.problems.items()),
        _summary(made),
    ]
    deeds: dict[str, list[dict[str, str]]] = {"started": [], "restarted": [], "stopped": []}
    for deed in made.done:
        deeds[deed.kind].append({"agent": deed.agent, "reason": deed.reason})
    left = [{"agent": one.agent, "state": one.state.value, "reason": one.reason} for one in made.left]
    told = {"phases": made.phases, "done": [str(deed) for deed in made.done], "problems": made.problems}
    output.record({**told, **deeds, "left": left, "running": made.running}, "\n".join(lines))
    if made.problems:
        click.get_current_context().exit(1)


def _summary(made: "Pass") -> str:
    """Such as `City started: started 3, restarted 1, left 1; 4 agents run.`"""
    kinds = [deed.kind for deed in made.done]
    parts = [f"{kind} {kinds.count(kind)}" for kind in ("started", "restarted", "stopped") if kind in kinds]
    parts += [f"left {len(made.left)}"] if made.left else []
    problems = ", with problems" if made.problems else ""
    agents = "1 agent runs" if made.running == 1 else f"{made.running} agents run"
    return f"City started{problems}: {', '.join(parts) or 'nothing was to be done'}; {agents}."


@click.command("stop", cls=LampCommand, context_settings=CONTEXT)
@click.option(
    "--within", metavar="DURATION", help="How long to wait; the city's shutdown_timeout and 30s when left out."
)
def stop(within: str | None) -> None:
    """Stop the city and its agents; returns when everything is down."""
    stop_and_tell(within)


def stop_and_tell(within: str | None) -> None:
    from lamplighter.app.status import stop_city

    done = stop_city(city(), within=within)
    lines = [f"Stopped agent `{name}`." for name in done.agents]
    if done.pid is not None:
        lines.append(f"City stopped (process {done.pid}).")
    else:
        lines.append("City stopped." if done.agents else "The city was not running.")
    output.record({"stopped": True, "pid": done.pid, "agents": list(done.agents)}, "\n".join(lines))


@click.command("restart", cls=LampCommand, context_settings=CONTEXT)
@click.option("--within", metavar="DURATION", help="How long to wait for the stop.")
def restart(within: str | None) -> None:
    """Stop the city and start it again: in the background where a daemon ran, else once, as `lamp start` does."""
    from lamplighter.app.background import start_background
    from lamplighter.app.membership import need_database
    from lamplighter.app.status import stop_city

    need_database(city().place)  # a city that could not be started again is not stopped
    done = stop_city(city(), within=within)
    if done.pid is None:
        _start_once()
        return
    pid = start_background(city(), within=30.0)
    output.record({"pid": pid, "before": done.pid}, f"City restarted (process {pid}).")


@click.command("status", cls=LampCommand, context_settings=CONTEXT)
@click.option("--watch", is_flag=True, help="Show it again and again; Ctrl-C ends it.")
@click.option(
    "--every", default=2.0, show_default=True, type=click.FloatRange(0.2, 3600), help="Seconds, with --watch."
)
def status(*, watch: bool, every: float) -> None:
    """How the city is: its controller, its agents, its work, what needs a person."""
    _show_status()
    while watch:
        time.sleep(every)
        if not output.wants_json():
            click.clear()
        city().forget_config()  # it may have changed
        _show_status()


def _show_status() -> None:
    from lamplighter.app.running_status import running_status

    value = running_status(settings())
    if value is None:
        from lamplighter.app.status import city_status

        value = city_status(city())
    elif value["controller"]["config_error"]:
        city()  # prints the problem on standard error, as every command does
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
            "API": controller.get("api"),
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
    if sum(max(len(node["processes"]), 1) for node in value["nodes"]) > 1 and not output.wants_json():
        _show_nodes(value["nodes"])
    if value["agents"] and not output.wants_json():
        from lamplighter.cli.agent_table import COLUMNS, shown

        up = sum(row["state"] in {"running", "draining"} for row in value["agents"])
        click.echo(f"\n{up} of {len(value['agents'])} agents run:")
        output.table(shown(value["agents"]), COLUMNS, empty="")


def _show_nodes(nodes: list[dict[str, Any]]) -> None:
    columns = {"NODE": "name", "STATE": "state", "SINCE": "since", "RIGS": "rigs", "PROCESSES": "processes"}
    rows = [
        node
        | {
            "since": output.local(node["since"]),
            "rigs": ", ".join(node["rigs"]),
            "processes": ", ".join(f"{one['kind']} {one['pid']}" for one in node["processes"]),
        }
        for node in nodes
    ]
    click.echo()
    output.table(rows, columns, empty="")


def command_for(name: str) -> click.Command:
    return {"up": up, "start": start, "stop": stop, "restart": restart, "status": status}[name]
