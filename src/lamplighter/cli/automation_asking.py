"""What `lamp automation create` asks of a person at a terminal who left it out: a name, what is done, and when."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from lamplighter.cli import output
from lamplighter.cli.automation_options import trigger_of
from lamplighter.cli.numbers import Whole
from lamplighter.cli.operations import do
from lamplighter.kit.errors import UsageError

TRIGGERS = {
    "cooldown": ("whenever so much time has passed", "1h"),
    "daily": ("every day at a time", "03:30"),
    "weekly": ("every week", "mon 09:00"),
    "hourly": ("every hour at a minute", ":05"),
    "cron": ("by a cron line", "30 8 * * mon-fri"),
    "once": ("once", "2026-12-01T09:00+01:00"),
    "condition": ("when a command succeeds", "test -s inbox.txt"),
    "event": ("on an event", "bead.*"),
    "manual": ("only by hand", ""),
}
ACTIONS = {
    "exec": ("run a command", "make test"),
    "prompt": ("have an agent do something", "Say which issues are urgent"),
    "formula": ("cook a formula", "release"),
}
_DOES = {"exec", "formula", "agent", "action"}


def completed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with what was left out, asked of the person at the terminal. Raises UsageError elsewhere."""
    found = dict(body)
    asks = not output.wants_json() and sys.stdin.isatty() and sys.stdout.isatty()
    if "name" not in found:
        if not asks:
            raise UsageError("Give the automation a name, or name a --template.")
        found = {"name": click.prompt("Name", type=str), **found}
    if not _DOES & set(found):
        if not asks:
            hint = "Give --exec COMMAND, --prompt TEXT for an agent, or --formula NAME."
            raise UsageError("It is not said what it does.", hint=hint)
        found |= _action()
    if "gate" not in found and "triggers" not in found:
        if not asks:
            options = ", ".join(f"--{name}" for name in TRIGGERS)
            raise UsageError("It is not said when it fires.", hint=f"Give one of {options}; such as --daily 03:30.")
        found |= _trigger()
    return found


def with_mode(body: Mapping[str, Any], told: Sequence[str]) -> dict[str, Any]:
    """The definition with the mode that the person at the terminal chooses."""
    from lamplighter.domain.city.modes import offered

    click.echo("What may the agent do without asking?", err=True)
    for line in told:
        click.echo(f"  {line}", err=True)
    mode = click.prompt("Mode", type=click.Choice(offered(told)), err=True)
    return {**body, "agent": {**body["agent"], "mode": mode}}


def _action() -> dict[str, Any]:
    chosen = _chosen("What shall it do?", ACTIONS)
    text = click.prompt({"exec": "Command", "prompt": "Prompt", "formula": "Formula"}[chosen], type=str)
    return {"agent": {"prompt": text}} if chosen == "prompt" else {chosen: text}


def _trigger() -> dict[str, Any]:
    """Asked again until it can be used: a typing error does not cost the answers before it."""
    chosen = _chosen("When shall it fire?", TRIGGERS)
    if chosen == "manual":
        return trigger_of({"manual": True})
    while True:
        text = click.prompt(TRIGGERS[chosen][0].capitalize(), type=str)
        try:
            found = trigger_of({chosen: text})
        except UsageError as error:
            click.echo(f"Error: {error.message} {error.hint}")
            continue
        wrong = _wrong(found)
        if not wrong:
            return found
        click.echo(f"Error: {wrong}")


def _wrong(trigger: Mapping[str, Any]) -> str:
    """What is not right about the trigger alone; empty if nothing is."""
    from lamplighter.services.automations.previewing import PREVIEW, PreviewAutomation

    told = do(PREVIEW, PreviewAutomation({"name": "asked", "exec": "true", **trigger}))
    return "; ".join(problem.message for problem in told.problems)


def _chosen(question: str, among: Mapping[str, tuple[str, str]]) -> str:
    click.echo(question)
    for number, (name, (what, such)) in enumerate(among.items(), 1):
        click.echo(f"  {number}  {what}{f', such as {such}' if such else ''}  (--{name})")
    return list(among)[click.prompt("Number", type=Whole(1, len(among))) - 1]
