"""`lamp up`, `start`, `stop`, `restart`, `status`: the city as a whole."""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, carries_out, city, remote, settings
from lamplighter.cli.numbers import Number
from lamplighter.kit.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.app.process import Pass, Started
    from lamplighter.cli.narrator import Narrator
    from lamplighter.cli.status import Line
    from lamplighter.domain.events import Event


def _as_typed(root: Path) -> str:
    """How to call this program for this city from the working directory."""
    import shutil

    beside = Path(sys.executable).parent / "lamp"  # `python -m lamplighter` has its own file as argv[0]
    called = beside if sys.argv[0].endswith("__main__.py") and beside.exists() else Path(sys.argv[0])
    program = "lamp" if shutil.which("lamp") else os.path.relpath(called)
    return program if Path.cwd() == root else f"{program} --city {os.path.relpath(root)}"


def run_foreground(*, quiet: bool = False, sign_in: bool = False) -> None:
    """Run the city until Ctrl-C, `lamp stop` or SIGTERM; on a terminal tell what happens, unless `quiet`.

    `sign_in`: tell the console's address with a link that signs a browser in; not for output that goes to a log.
    """
    from lamplighter.app.daemon_log import log_beside_a_view, log_stream
    from lamplighter.app.process import Started, run_city
    from lamplighter.kit import log

    chosen = settings()
    live = not quiet and not output.wants_json() and sys.stdout.isatty()
    log.set_up(log_beside_a_view(chosen) if live else log_stream(chosen))

    def started(report: Started) -> None:
        if narrator is not None:
            narrator.lamp = _as_typed(report.paths.root)
        if output.wants_json():
            told = {"city": report.config.city.name, "root": str(report.paths.root), "store": report.store}
            output.record(told | {"next": report.peek.next}, "")
        else:
            _banner(report, live=live, sign_in=sign_in)

    narrator = _narrator() if live else None
    tell = None if narrator is None else _telling(narrator)
    left = run_city(chosen, started=lambda report: _if_written(lambda: started(report)), warn=output.note, tell=tell)
    if not output.wants_json():
        ended = "The daemon ended; its agents run on, and the next daemon finds them." if left else "City stopped."
        _if_written(lambda: click.echo(ended))


def _banner(report: "Started", *, live: bool, sign_in: bool) -> None:
    from lamplighter.services.console import moved_port

    name = report.config.city.name
    for warning in report.config.warnings:
        click.echo(f"{click.style('note:', fg='yellow')} {warning}", err=True)
    for owner in report.took_over:
        click.echo(f"Took over from process {owner.pid} on {owner.host}, which is gone.")
    click.echo(f"{click.style('The lamps are lit', fg='yellow', bold=True)} in city `{name}` ({report.paths.root}).")
    if not report.store.startswith(str(report.paths.root)):
        click.echo(f"Store: {report.store}")
    held = report.peek.paused or report.config.city.workspace.suspended
    coming = "nothing, until `lamp resume`" if held else output.soon(report.peek.next, SystemClock().now())
    if coming:
        output.text(f"Next:  {coming}")
    lamp = _as_typed(report.paths.root)
    if report.console is not None and sign_in:
        click.echo(f"Console: signs you in, once (later: {lamp} open)\n  {report.sign_in()}")
    elif report.console is not None:
        click.echo(f"Console: {report.console}    (`{lamp} open` signs you in)")
    moved = None if report.api is None else moved_port(report.port, report.api, report.port_before)
    if moved is not None:
        output.note(moved)
    click.echo(f"Look:  {lamp} status    (or: inbox · doctor · --help)")
    if report.peek.next:
        click.echo(f"Why:   {lamp} automation explain {report.peek.next[-1]['scoped_name']}")
    click.echo(f"Stop:  Ctrl-C, or: {lamp} stop")
    if live:
        click.echo()


def _narrator() -> "Narrator":
    from lamplighter.cli.narrator import Narrator

    return Narrator()


def _telling(narrator: "Narrator") -> "Callable[[Event], None]":
    def tell(event: "Event") -> None:
        for line in narrator.lines(event):
            _if_written(partial(output.hanging if line.whole else output.beside, line.head, line.body))

    return tell


def _if_written(say: Callable[[], None]) -> None:
    """Print; if the reader is gone or the disk is full, the output is dropped and the city keeps running."""
    try:
        say()
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else flushing the buffer fails again later


@click.command("up", cls=LampCommand, context_settings=CONTEXT)
@click.option("--quiet", is_flag=True, help="Log lines in place of what happens, as without a terminal.")
def up(*, quiet: bool) -> None:
    """Run the city in the foreground: the same as `lamp start --foreground` and `lamp daemon run`.

    On a terminal it tells what happens, a line each; the log goes to `.gc/daemon.log` then. Else it logs.
    """
    run_foreground(quiet=quiet, sign_in=True)


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
    """Stop the city: its daemon, its agents and the runs under way; returns when everything is down.

    `lamp daemon restart` replaces the daemon and keeps agents and runs.
    """
    stop_and_tell(within)


def stop_and_tell(within: str | None) -> None:
    from lamplighter.app.stop_city import stop_city

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
    """Stop the city and start it again: in the background where a daemon ran, else once, as `lamp start` does.

    Its agents are stopped and started as new processes, and runs under way are ended. `lamp daemon restart` replaces
    the daemon and keeps both.
    """
    from lamplighter.app.background import start_background
    from lamplighter.app.membership import need_database
    from lamplighter.app.stop_city import stop_city

    need_database(city().place)  # a city that could not be started again is not stopped
    done = stop_city(city(), within=within)
    if done.pid is None:
        _start_once()
        return
    pid = start_background(city(), within=30.0)
    count = done.running
    agents = {0: "No agent ran", 1: "Its agent was stopped and is started anew"}.get(
        count, f"Its {count} agents were stopped and are started anew"
    )
    kept = "" if count == 0 else "; `lamp daemon restart` would have kept " + ("it" if count == 1 else "them")
    told = f"City restarted (process {pid}). {agents}{kept}."
    output.record({"pid": pid, "before": done.pid, "agents": count}, output.commands(told))


@click.command("status", cls=LampCommand, context_settings=CONTEXT)
@click.option("--watch", is_flag=True, help="Show it again and again, in place; `q` ends it.")
@click.option("--every", default=2.0, show_default=True, type=Number(0.2, 3600), help="Seconds, with --watch.")
@carries_out("city.status")
def status(*, watch: bool, every: float) -> None:
    """How the city is: its health, what needs a person, its agents and runs, what failed last, what comes next."""
    if watch and not output.wants_json() and sys.stdin.isatty() and sys.stdout.isatty():
        from lamplighter.cli.watching import watch_pages

        watch_pages(_page_anew, every=every)
        return
    _print_status()
    while watch:
        time.sleep(every)
        _forget_config()
        _print_status()


def _print_status() -> None:
    if output.wants_json():
        click.echo(json.dumps(_status()))
    else:
        click.echo("\n".join(line.text for line in _page(output.terminal_width())))


def _page_anew(width: int) -> "list[Line]":
    _forget_config()
    return _page(width)


def _forget_config() -> None:
    opened = click.get_current_context().find_root().meta.get("lamp.opened")
    if opened is not None:
        opened.forget_config()  # it may have changed


def _page(width: int | None) -> "list[Line]":
    from lamplighter.cli.status import page

    return page(_status(), SystemClock().now(), width)


def _status() -> dict[str, Any]:
    """The status as JSON has it, from the daemon if one runs, else from the records."""
    from lamplighter.app.is_running import is_running

    if remote() is not None:
        return _asked_status(here=False)
    chosen, value = settings(), None
    if is_running(chosen):
        from lamplighter.app.running_status import running_status

        value = running_status(chosen)
    if value is None:
        from lamplighter.app.stopped_status import stopped_status

        value = stopped_status(chosen)
    if value is None:
        value = _asked_status(here=True)
    elif value["controller"]["config_error"]:
        city()  # prints the problem on standard error, as every command does
    return value


def _asked_status(*, here: bool) -> dict[str, Any]:
    from lamplighter.cli.operations import do
    from lamplighter.kit.shapes import to_json
    from lamplighter.services.status import SHOW_STATUS, ShowStatus

    told: dict[str, Any] = to_json(do(SHOW_STATUS, ShowStatus(), here=here))
    return told


def command_for(name: str) -> click.Command:
    return {"up": up, "start": start, "stop": stop, "restart": restart, "status": status}[name]
