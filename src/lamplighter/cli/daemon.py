"""`lamp daemon`: the city's process."""

from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import city, group, settings
from lamplighter.cli.control import run_foreground, stop_and_tell
from lamplighter.cli.numbers import Whole
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import UsageError

daemon = group("The city's process.")


@daemon.command("run")
def run() -> None:
    """Run the city in the foreground: the same as `lamp up`."""
    run_foreground()


@daemon.command("start")
@click.option("--within", default="30s", show_default=True, metavar="DURATION", help="How long to wait for its answer.")
def start(within: str) -> None:
    """Run the city in the background; returns when it answers. Its log is `.gc/daemon.log`."""
    from lamplighter.app.background import port_before, start_background
    from lamplighter.app.create import prepare_start

    try:
        limit = parse_duration(within).total_seconds()
    except ValueError as error:
        raise UsageError(f"--within: {error}.") from error
    prepare_start(settings())
    before = port_before(city())
    pid = start_background(city(), within=limit)
    told = f"The city runs in the background (process {pid})."
    _tell_running({"pid": pid, "log": str(city().paths.log)}, told, before)


@daemon.command("restart")
@click.option("--within", metavar="DURATION", help="How long to wait for the end of the old one.")
def restart(within: str | None) -> None:
    """Replace the daemon by a new one in the background; agents and runs under way are kept.

    Their sessions and commands run on meanwhile, and the new daemon goes on with them. Where none runs, one is started.
    A service begins again as the same process, with its own environment; else the new one has that of this command.
    """
    from lamplighter.app.background import port_before, replace_daemon
    from lamplighter.app.membership import need_database

    need_database(city().place)  # a daemon that could not be started again is not ended
    before = port_before(city())
    done = replace_daemon(city(), within=within)
    kept = None if done.old is None else done.old.agents
    if kept is None:
        told = f"No daemon ran; the city runs in the background now (process {done.pid})."
    else:
        agents = {0: "no agent ran", 1: "its agent ran on"}.get(kept, f"its {kept} agents ran on")
        told = f"Daemon restarted (process {done.pid}); {agents}."
    _tell_running({"pid": done.pid, "before": None if done.old is None else done.old.pid, "agents": kept}, told, before)


def _tell_running(value: dict[str, Any], text: str, before: int | None) -> None:
    """Tell that the daemon runs, and where its console is; `before` is the port that it had last."""
    from lamplighter.app.background import reached

    found = reached(city(), before)
    if found.moved is not None:
        output.note(found.moved)
    console = "" if found.console is None else f"\nConsole: {found.console}    (`lamp open` signs you in)"
    output.record(value | {"console": found.console}, output.commands(f"{text}{console}"))


@daemon.command("stop")
@click.option(
    "--within", metavar="DURATION", help="How long to wait; the city's shutdown_timeout and 30s when left out."
)
def stop(within: str | None) -> None:
    """Stop the city: its daemon, its agents and the runs under way; returns when everything is down.

    `lamp daemon restart` replaces the daemon and keeps agents and runs.
    """
    stop_and_tell(within)


@daemon.command("status")
def status() -> None:
    """Whether the city's process runs; fails when it does not."""
    from lamplighter.app.controller_view import controller_status
    from lamplighter.kit.shapes import to_json

    value = to_json(controller_status(city()))
    running = value["running"]
    text = f"running, process {value['pid']}, since {output.local(value['since'])}" if running else "not running"
    if value["died_at"] is not None:
        text = (
            f"died after its last sign of life, {output.local(value['died_at'])}; `lamp daemon start` starts it again"
        )
    shown = {
        "Daemon": output.commands(text),
        "Last tick": output.local(value["last_tick_at"]),
        "Problem": value["config_error"],
    }
    output.fields(value, shown | {f"Problem in {name}": said for name, said in value["problems"].items()})
    if not running:
        click.get_current_context().exit(1)


@daemon.command("logs")
@click.option("--lines", "-n", default=50, show_default=True, type=Whole(1, 1_000_000), help="So many.")
@click.option("--follow", "-f", is_flag=True, help="Go on showing what comes; Ctrl-C ends it.")
def logs(lines: int, *, follow: bool) -> None:
    """The last lines of the log of a daemon in the background."""
    from lamplighter.app import background

    path = city().paths.log
    found = background.last_lines(path, lines)
    output.record({"log": str(path), "lines": found}, output.plain("\n".join(found)) if found else "The log is empty.")
    if follow:
        background.follow(path, lambda line: click.echo(output.plain(line)))


@daemon.command("install")
@click.option("--system", is_flag=True, help="For the whole machine, not for this user alone; needs root.")
@click.option("--print", "only_print", is_flag=True, help="Show the file; write nothing.")
def install(*, system: bool, only_print: bool) -> None:
    """Make the city a service: a systemd unit, or a launchd property list on macOS."""
    from lamplighter.app import service_units

    opened = city()
    opened.need_own()  # the unit's name contains the city's id
    unit = service_units.unit_for(opened.paths, opened.settings.env, system=system)
    if only_print:
        output.record({"path": str(unit.path), "content": unit.content}, unit.content.rstrip("\n"))
        return
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(unit.content, encoding="utf-8")
    left = service_units.run_all(unit.enable, opened.settings.env)
    _tell_unit(f"Wrote {unit.path}.", str(unit.path), left)


@daemon.command("uninstall")
@click.option("--system", is_flag=True, help="The one for the whole machine.")
def uninstall(*, system: bool) -> None:
    """Take the service away; the daemon is stopped with it."""
    from lamplighter.app import service_units

    opened = city()
    opened.need_own()
    unit = service_units.unit_for(opened.paths, opened.settings.env, system=system)
    if not unit.path.exists():
        output.record({"path": str(unit.path), "left": []}, "The city is not installed as a service.")
        return
    left = service_units.run_all(unit.disable, opened.settings.env)
    unit.path.unlink()
    _tell_unit(f"Removed {unit.path}.", str(unit.path), left)


def _tell_unit(done: str, path: str, left: list[str]) -> None:
    by_hand = ["Now run by hand:", *(f"  {command}" for command in left)] if left else []
    output.record({"path": path, "left": left}, "\n".join([done, *by_hand]))


def command_for(_name: str) -> click.Command:
    return daemon
