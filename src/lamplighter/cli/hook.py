"""`lamp hook` and `lamp prime`: what an agent asks from inside its session."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city, remote, settings
from lamplighter.cli.completing import names
from lamplighter.cli.operations import carries_out, do
from lamplighter.kit.errors import LampError
from lamplighter.kit.shapes import to_json

REMINDER = """\
<system-reminder>
There is work on your hook:

{work}

Do it now, without asking. `lamp bead show ID` tells all about it.
</system-reminder>"""


@click.command("hook", cls=LampCommand, context_settings=CONTEXT)
@click.argument("agent", required=False, shell_complete=names("agent"))
@click.option("--inject", is_flag=True, help="As a reminder for the agent's program; always succeeds.")
@carries_out("hook.show")
def hook(agent: str | None, *, inject: bool) -> None:
    """The work on an agent's hook; fails when there is none. AGENT is the one whose session this is when left out."""
    from lamplighter.services.hooks import HOOK, NOTHING, ShowHook

    try:
        if inject and remote() is None:
            city()  # opened first without patience: a reminder must not make the agent's program wait
        found = do(HOOK, ShowHook(*_whose(agent)))
    except LampError:
        if not inject:
            raise
        found = NOTHING  # a failing hook must not stop the agent that calls it
    if inject:
        if found:
            click.echo(REMINDER.format(work=output.plain(found.work.strip())))
        return
    if output.wants_json() or found:
        output.record(to_json(found), found.work.rstrip("\n"))
    if not found:
        click.get_current_context().exit(1)


@click.command("prime", cls=LampCommand, context_settings=CONTEXT)
@click.argument("agent", required=False, shell_complete=names("agent"))
@carries_out("prime.show")
def prime(agent: str | None) -> None:
    """An agent's instructions: its prompt, rendered; general ones where it has none."""
    from lamplighter.services.hooks import PROMPT, ShowPrompt

    found = do(PROMPT, ShowPrompt(*_whose(agent)))
    if found.prompt or output.wants_json():
        output.record(to_json(found), found.prompt.rstrip("\n"))


def _whose(agent: str | None) -> tuple[str | None, str | None]:
    """The agent that is named, and the one whose session this is; a city on another machine is told one name."""
    own = settings().agent
    return (agent, own) if remote() is None else (agent or own, None)


def command_for(name: str) -> click.Command:
    return {"hook": hook, "prime": prime}[name]
