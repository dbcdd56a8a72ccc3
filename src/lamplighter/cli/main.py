"""The root command: the list of commands, and how an error becomes an exit code."""

import json
import os
import sys
from collections.abc import Sequence

import click

from lamplighter.app.settings import wants_no_colour
from lamplighter.cli.base import CONTEXT, LampGroup
from lamplighter.cli.output import NAMES_CITY, fail, naming
from lamplighter.kit.errors import LampError, Unavailable, UsageError

COMMANDS = {
    "init": ("lamplighter.cli.init", "Make a city here."),
    "up": ("lamplighter.cli.control", "Run the city in the foreground."),
    "start": ("lamplighter.cli.control", "Bring the city to its wanted state once; --foreground stays."),
    "stop": ("lamplighter.cli.control", "Stop the city and its agents; returns when everything is down."),
    "restart": ("lamplighter.cli.control", "Stop the city and its agents, and start them again."),
    "status": ("lamplighter.cli.control", "How the city is."),
    "pause": ("lamplighter.cli.suspend", "Stop all firing at once; runs under way go on."),
    "suspend": ("lamplighter.cli.suspend", "Suspend the city: nothing starts, nothing fires."),
    "resume": ("lamplighter.cli.suspend", "Lift pause and suspension, and say which."),
    "inbox": ("lamplighter.cli.inbox", "What needs a person: list, show, claim, resolve, retry, dismiss, snooze."),
    "open": ("lamplighter.cli.open", "Open the web console: a link that signs a browser in."),
    "doctor": ("lamplighter.cli.doctor", "Look for what is wrong with the city; --fix mends what can be."),
    "backup": ("lamplighter.cli.keeping", "Save the city in one file, while it may run."),
    "restore": ("lamplighter.cli.keeping", "Make a city from a backup."),
    "uninstall": ("lamplighter.cli.keeping", "Stop the city and its service, and say what is left."),
    "cost": ("lamplighter.cli.cost", "What runs cost, by day, automation or model."),
    "simulate": ("lamplighter.cli.simulate", "What would fire in the coming days, in order."),
    "import": ("lamplighter.cli.importing", "Take over a crontab: cron."),
    "automation": ("lamplighter.cli.automation", "Work that fires when it is due: list, show, run, check, explain, …"),
    "run": (
        "lamplighter.cli.run",
        "Executions of automations: list, show, watch, logs, cancel, retry, claim, resolve.",
    ),
    "bulk": ("lamplighter.cli.bulk", "One thing done to many runs: create, preview, list, show, results, abort."),
    "view": ("lamplighter.cli.view", "Kept filters of runs: list, save, delete."),
    "find": ("lamplighter.cli.view", "Automations and runs by a part of their names."),
    "configuration": ("lamplighter.cli.configuration", "Where and with what agent runs work: list, show, create, …"),
    "config": ("lamplighter.cli.config", "The configuration: check, show, explain."),
    "agent": ("lamplighter.cli.agent", "Long-lived workers: list, show, peek, nudge, drain, restart, suspend, …"),
    "login": ("lamplighter.cli.login", "The logins that agent runs use: list, check."),
    "session": ("lamplighter.cli.session", "What runs for them: list, show, logs, send."),
    "worktree": ("lamplighter.cli.worktree", "The working directories of runs: list, clean."),
    "hook": ("lamplighter.cli.hook", "The work on an agent's hook."),
    "prime": ("lamplighter.cli.hook", "An agent's instructions."),
    "mail": ("lamplighter.cli.mail", "Messages between agents and people: send, inbox, check, read, archive."),
    "rig": ("lamplighter.cli.rig", "Project directories: list, add, suspend, resume."),
    "bead": ("lamplighter.cli.bead", "Units of work: create, list, ready, claim, update, close, label."),
    "formula": ("lamplighter.cli.formula", "Templates of work: list, show, cook."),
    "event": ("lamplighter.cli.event", "What happened: list, tail, emit."),
    "notify": ("lamplighter.cli.notify", "Where people are told what needs them: list, log, test."),
    "outbox": ("lamplighter.cli.outbox", "Work that waits or was given up: list, retry."),
    "member": ("lamplighter.cli.people", "The people of the city: list, add, role, remove."),
    "token": ("lamplighter.cli.people", "By which programs act in a member's name: create, list, revoke."),
    "connection": ("lamplighter.cli.connection", "Where deliveries come in: create, list, show, rotate, test, delete."),
    "slack": ("lamplighter.cli.slack", "Slack: manifest, install, list, test, remove, link."),
    "delivery": ("lamplighter.cli.connection", "What came in, and what became of it: list, show, replay."),
    "secret": ("lamplighter.cli.secret", "Values that programs are given and nobody is shown: set, list, delete, …"),
    "audit": ("lamplighter.cli.people", "Who changed what: list, export."),
    "context": ("lamplighter.cli.context", "Cities on other machines: add, list, use, remove."),
    "daemon": ("lamplighter.cli.daemon", "The city's process: run, start, stop, status, logs, install, uninstall."),
    "worker": ("lamplighter.cli.worker", "Run only the run pipeline, on PostgreSQL; as many as wanted."),
    "mcp": ("lamplighter.cli.mcp", "The city's tools for agents, over standard input and output."),
    "store": ("lamplighter.cli.store", "The database: migrate, copy to another one."),
    "completion": ("lamplighter.cli.completion", "Completion for bash, zsh or fish."),
    "version": ("lamplighter.cli.completion", "The version of this program."),
}


class Root(LampGroup):
    """All commands; a subject of the table of operations that is not in the list above gets a group of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_further_subjects()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _further_subjects():
            from lamplighter.cli.operations import Subject

            return Subject(cmd_name, _further_subjects()[cmd_name])
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([*((name, text) for name, (_, text) in COMMANDS.items()), *_further_subjects().items()])


def _further_subjects() -> dict[str, str]:
    """The subjects whose commands are made from the table alone, each with a line of help."""
    from lamplighter.services.table import TABLE

    found: dict[str, list[str]] = {}
    for subject, _, verb in (name.partition(".") for name in TABLE):
        if subject not in COMMANDS and subject != "city":  # the city's own verbs are commands themselves
            found.setdefault(subject, []).append(verb)
    return {subject: f"The {subject}s of the city: {', '.join(verbs)}." for subject, verbs in found.items()}


root = Root(
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
        colour = False if wants_no_colour() else None  # None: as the terminal allows
        code = root.main(args=list(arguments), prog_name="lamp", standalone_mode=False, color=colour)
        sys.stdout.flush()
    except (click.ClickException, click.Abort, LampError, OSError, KeyboardInterrupt) as error:
        return _ended_by(error, as_json=as_json, named=_named_in(arguments))
    except SystemExit:  # click ends so, with 1, for one reason only: whoever read the output has left
        return _ended_by(BrokenPipeError(), as_json=as_json)
    return code if isinstance(code, int) else 0


def _named_in(arguments: Sequence[str]) -> str | None:
    """The option and the value that name the city on the line; None where none does."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        for option in NAMES_CITY:
            if before == f"--{option}":
                return naming(option, argument)
            if argument.startswith(f"--{option}="):
                return naming(option, argument.removeprefix(f"--{option}="))
    return None


def _ended_by(error: BaseException, *, as_json: bool, named: str | None = None) -> int:
    match error:
        case LampError():
            return fail(error, as_json=as_json, named=named)
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            return _usage(error, as_json=as_json)
        case BrokenPipeError():
            _leave_quietly()
            return 0
        case OSError():
            return fail(_of_the_system(error), as_json=as_json, named=named)
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
