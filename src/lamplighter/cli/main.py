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
    "init": ("lamplighter.cli.init", "Make a city here; --demo makes one to look at."),
    "up": ("lamplighter.cli.control", "Run the city in this terminal, and tell what happens."),
    "status": ("lamplighter.cli.control", "How the city is; --watch keeps it on the screen."),
    "inbox": ("lamplighter.cli.inbox", "What needs you: questions, failures, plans, trouble."),
    "automation": ("lamplighter.cli.automation", "Work that fires when it is due: create, run, explain, …"),
    "run": ("lamplighter.cli.run", "What was fired: list, show, logs, watch, answer, diff, …"),
    "open": ("lamplighter.cli.open", "Open the web console: a link that signs a browser in."),
    "doctor": ("lamplighter.cli.doctor", "Look for what is wrong; --fix mends what can be."),
    "daemon": ("lamplighter.cli.daemon", "The city in the background: start, stop, logs, install, …"),
    "start": ("lamplighter.cli.control", "Bring its agents to their wanted state once, and leave."),
    "stop": ("lamplighter.cli.control", "Stop the city and its agents."),
    "restart": ("lamplighter.cli.control", "Stop the city and its agents, and start them again."),
    "pause": ("lamplighter.cli.suspend", "Fire nothing; runs under way go on."),
    "suspend": ("lamplighter.cli.suspend", "Start nothing and fire nothing."),
    "resume": ("lamplighter.cli.suspend", "Lift pause and suspension."),
    "config": ("lamplighter.cli.config", "What city.toml says: check, show, explain."),
    "rig": ("lamplighter.cli.rig", "The projects it works in: list, add, suspend, resume."),
    "secret": ("lamplighter.cli.secret", "Values for programs that nobody is shown: set, list, …"),
    "simulate": ("lamplighter.cli.simulate", "What would fire in the coming days; --calendar draws weeks."),
    "cost": ("lamplighter.cli.cost", "What runs cost, by day, automation or model."),
    "import": ("lamplighter.cli.importing", "Take over a crontab."),
    "bulk": ("lamplighter.cli.bulk", "One thing done to many runs: create, preview, show, abort, …"),
    "worktree": ("lamplighter.cli.worktree", "The working directories of runs: list, clean."),
    "configuration": ("lamplighter.cli.configuration", "Where and with what agent runs work: list, show, create, …"),
    "bead": ("lamplighter.cli.bead", "Tasks: create, list, ready, claim, update, close, label."),
    "formula": ("lamplighter.cli.formula", "Templates of work: list, show, cook."),
    "find": ("lamplighter.cli.view", "Automations and runs by a part of their names."),
    "view": ("lamplighter.cli.view", "Filters of runs that are kept: list, save, delete."),
    "agent": ("lamplighter.cli.agent", "Workers that are kept alive: list, peek, attach, nudge, …"),
    "session": ("lamplighter.cli.session", "Where agents and runs work: list, show, logs, send, …"),
    "login": ("lamplighter.cli.login", "How agent programs are signed in: list, check."),
    "mail": ("lamplighter.cli.mail", "Messages between agents and people: send, inbox, read, …"),
    "hook": ("lamplighter.cli.hook", "The work on an agent's hook."),
    "prime": ("lamplighter.cli.hook", "What an agent is told when it begins."),
    "mcp": ("lamplighter.cli.mcp", "The city's tools for agents, over standard input and output."),
    "notify": ("lamplighter.cli.notify", "Where people are told: list, test, log, rules."),
    "event": ("lamplighter.cli.event", "What happened: list, tail, emit."),
    "connection": ("lamplighter.cli.connection", "Where webhooks come in: create, list, rotate, test, …"),
    "delivery": ("lamplighter.cli.connection", "What came in, and what became of it: list, show, replay."),
    "outbox": ("lamplighter.cli.outbox", "Work that waits or was given up: list, retry."),
    "slack": ("lamplighter.cli.slack", "Slack: manifest, install, list, test, remove, link."),
    "org": ("lamplighter.cli.org", "Cities that share their members: show, invite, join, leave, …"),
    "member": ("lamplighter.cli.people", "The people of the city: list, add, role, remove."),
    "token": ("lamplighter.cli.people", "What programs sign in with: create, list, revoke."),
    "audit": ("lamplighter.cli.people", "Who changed what: list, export."),
    "context": ("lamplighter.cli.context", "Cities on other machines: add, list, use, remove."),
    "worker": ("lamplighter.cli.worker", "Work on runs beside the daemon, on PostgreSQL."),
    "backup": ("lamplighter.cli.keeping", "Save the city in one file, while it may run."),
    "restore": ("lamplighter.cli.keeping", "Make a city from a backup."),
    "store": ("lamplighter.cli.store", "The database: migrate, copy to another one."),
    "uninstall": ("lamplighter.cli.keeping", "Stop the city and its service, and say what is left."),
    "completion": ("lamplighter.cli.completion", "Completion for bash, zsh or fish."),
    "version": ("lamplighter.cli.completion", "The version of this program."),
}
SECTIONS = {
    "Every day": ("init", "up", "status", "inbox", "automation", "run", "open", "doctor"),
    "The city": ("daemon", "start", "stop", "restart", "pause", "suspend", "resume", "config", "rig", "secret"),
    "Work": ("simulate", "cost", "import", "bulk", "worktree", "configuration", "bead", "formula", "find", "view"),
    "Agents": ("agent", "session", "login", "mail", "hook", "prime", "mcp"),
    "In and out": ("notify", "event", "connection", "delivery", "outbox", "slack"),
    "Others and other machines": ("member", "token", "audit", "org", "context", "worker"),
    "Keeping it": ("backup", "restore", "store", "uninstall", "completion", "version"),
}
"""The commands as the help shows them."""
MACHINES = "Others and other machines"
"""The section of those that are made from the table alone."""


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
        further = _further_subjects()
        widest = max(map(len, [*COMMANDS, *further]))
        for heading, listed in {**SECTIONS, MACHINES: (*SECTIONS[MACHINES], *further)}.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), COMMANDS[name][1] if name in COMMANDS else further[name]) for name in listed]
                )


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
