"""The root command: which nouns there are, and how an error becomes an exit code."""

import json
import sys
from collections.abc import Sequence

import click

from lamplighter.cli.base import CONTEXT, LampGroup
from lamplighter.cli.output import fail
from lamplighter.kit.errors import LampError

COMMANDS = {
    "init": ("lamplighter.cli.init", "Make a city here."),
    "up": ("lamplighter.cli.control", "Run the city in the foreground."),
    "start": ("lamplighter.cli.control", "Bring the city to its wanted state once; --foreground stays."),
    "stop": ("lamplighter.cli.control", "Stop the city; returns when everything is down."),
    "status": ("lamplighter.cli.control", "How the city is."),
    "suspend": ("lamplighter.cli.suspend", "Suspend the city: nothing starts, nothing fires."),
    "resume": ("lamplighter.cli.suspend", "Lift the city's suspension."),
    "doctor": ("lamplighter.cli.doctor", "Look for what is wrong with the city; --fix mends what can be."),
    "config": ("lamplighter.cli.config", "The configuration: check, show, explain."),
    "rig": ("lamplighter.cli.rig", "Project directories: list, add, suspend, resume."),
    "bead": ("lamplighter.cli.bead", "Units of work: create, list, ready, claim, update, close, label."),
    "formula": ("lamplighter.cli.formula", "Templates of work: list, show, cook."),
    "event": ("lamplighter.cli.event", "What happened: list, tail, emit."),
    "daemon": ("lamplighter.cli.daemon", "The city's process: run."),
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
    """The exit code: 0 ok, 1 no, 2 usage, 3 not found, 4 conflict, 5 unavailable."""
    as_json = "--json" in arguments
    try:
        code = root.main(args=list(arguments), prog_name="lamp", standalone_mode=False)
    except LampError as error:
        return fail(error, as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _usage(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader left; nothing more can be told
        return 0
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        problem = {"type": "usage", "title": "UsageError", "detail": error.format_message(), "hint": "See --help."}
        click.echo(json.dumps(problem), err=True)
    else:
        error.show()
    return error.exit_code
