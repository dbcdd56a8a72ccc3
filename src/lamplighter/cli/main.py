"""The root command: the list of commands, and how an error becomes an exit code."""

import json
import os
import sys
from collections.abc import Sequence

import click

from lamplighter.cli.base import CONTEXT, LampGroup
from lamplighter.cli.output import fail
from lamplighter.kit.errors import LampError, Unavailable, UsageError

COMMANDS = {
    "init": ("lamplighter.cli.init", "Make a city here."),
    "up": ("lamplighter.cli.control", "Run the city in the foreground."),
    "start": ("lamplighter.cli.control", "Bring the city to its wanted state once; --foreground stays."),
    "stop": ("lamplighter.cli.control", "Stop the city; returns when everything is down."),
    "restart": ("lamplighter.cli.control", "Stop the city and start it again."),
    "status": ("lamplighter.cli.control", "How the city is."),
    "pause": ("lamplighter.cli.suspend", "Stop all firing at once; runs under way go on."),
    "suspend": ("lamplighter.cli.suspend", "Suspend the city: nothing starts, nothing fires."),
    "resume": ("lamplighter.cli.suspend", "Lift pause and suspension, and say which."),
    "doctor": ("lamplighter.cli.doctor", "Look for what is wrong with the city; --fix mends what can be."),
    "simulate": ("lamplighter.cli.simulate", "What would fire in the coming days, in order."),
    "automation": ("lamplighter.cli.automation", "Work that fires when it is due: list, show, run, check, explain, …"),
    "run": ("lamplighter.cli.run", "Executions of automations: list, show, watch, logs, cancel, retry."),
    "configuration": ("lamplighter.cli.configuration", "Where and with what agent runs work: list, show, create, …"),
    "config": ("lamplighter.cli.config", "The configuration: check, show, explain."),
    "agent": ("lamplighter.cli.agent", "Long-lived workers: list, show, peek, nudge, drain, restart, suspend, …"),
    "session": ("lamplighter.cli.session", "What runs for them: list, show, logs."),
    "hook": ("lamplighter.cli.hook", "The work on an agent's hook."),
    "prime": ("lamplighter.cli.hook", "An agent's instructions."),
    "mail": ("lamplighter.cli.mail", "Messages between agents and people: send, inbox, check, read, archive."),
    "rig": ("lamplighter.cli.rig", "Project directories: list, add, suspend, resume."),
    "bead": ("lamplighter.cli.bead", "Units of work: create, list, ready, claim, update, close, label."),
    "formula": ("lamplighter.cli.formula", "Templates of work: list, show, cook."),
    "event": ("lamplighter.cli.event", "What happened: list, tail, emit."),
    "daemon": ("lamplighter.cli.daemon", "The city's process: run, start, stop, status, logs, install, uninstall."),
    "worker": ("lamplighter.cli.worker", "Run only the run pipeline, on PostgreSQL; as many as wanted."),
    "mcp": ("lamplighter.cli.mcp", "The city's tools for agents, over standard input and output."),
    "store": ("lamplighter.cli.store", "The database: migrate."),
    "completion": ("lamplighter.cli.completion", "Completion for bash, zsh or fish."),
    "version": ("lamplighter.cli.completion", "The version of this program."),
}

root = LampGroup(
    name="lamp",
    help="Look after a city of coding agents.",
    lazy=COMMANDS,
    context_settings=CONTEXT,
    no_args_is_help=True,
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code.

    0 ok, 1 no, 2 usage, 3 not found, 4 conflict, 5 unavailable, 6 the city is gone, 130 interrupted.
    """
    as_json = "--json" in arguments
    try:
        _need_text(arguments)
        code = root.main(args=list(arguments), prog_name="lamp", standalone_mode=False)
        sys.stdout.flush()
    except (click.ClickException, click.Abort, LampError, OSError, KeyboardInterrupt) as error:
        return _ended_by(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _ended_by(error: BaseException, *, as_json: bool) -> int:
    match error:
        case LampError():
            return fail(error, as_json=as_json)
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            return _usage(error, as_json=as_json)
        case BrokenPipeError():
            _leave_quietly()
            return 0
        case OSError():
            return fail(_of_the_system(error), as_json=as_json)
        case _:
            return 130


def _need_text(arguments: Sequence[str]) -> None:
    """Raises UsageError for arguments that are not UTF-8: they would fail only later, when stored or shown."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"The argument {argument.encode(errors='replace').decode()!r} is not UTF-8 text.",
                hint="Check the encoding of your shell; for a directory with such a name, go there instead.",
            ) from None


def _leave_quietly() -> None:
    """Redirect standard output to nowhere: its reader left, and the interpreter's final flush would fail too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _of_the_system(error: OSError) -> LampError:
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return Unavailable(
        f"The system did not allow it: {where}{error.strerror or error}.",
        hint="Check the owner, mode and disk of what is named; nothing that was acknowledged is lost.",
    )


def _usage(error: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        problem = {"type": "usage", "title": "UsageError", "detail": error.format_message(), "hint": "See --help."}
        click.echo(json.dumps(problem), err=True)
    else:
        error.show()
    return error.exit_code
