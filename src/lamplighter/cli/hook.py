"""`lamp hook` and `lamp prime`: what an agent asks from inside its session."""

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, city, patient_city
from lamplighter.kit.errors import LampError

REMINDER = """\
<system-reminder>
There is work on your hook:

{work}

Do it now, without asking. `lamp bead show ID` tells all about it.
</system-reminder>"""


@click.command("hook", cls=LampCommand, context_settings=CONTEXT)
@click.argument("agent", required=False)
@click.option("--inject", is_flag=True, help="As a reminder for the agent's program; always succeeds.")
def hook(agent: str | None, *, inject: bool) -> None:
    """The work on an agent's hook; fails when there is none. AGENT is the one whose session this is when left out."""
    from lamplighter.app.hooks import NOTHING, on_hook

    try:
        found = on_hook(city() if inject else patient_city(), agent)
    except LampError:
        if not inject:
            raise
        found = NOTHING  # a failing hook must not stop the agent that calls it
    if inject:
        if found:
            click.echo(REMINDER.format(work=output.plain(found.text.strip())))
        return
    if output.wants_json() or found:
        beads = [bead.as_json() for bead in found.beads]
        output.record({"work": found.text, "beads": beads}, found.text.rstrip("\n"))
    if not found:
        click.get_current_context().exit(1)


@click.command("prime", cls=LampCommand, context_settings=CONTEXT)
@click.argument("agent", required=False)
def prime(agent: str | None) -> None:
    """An agent's instructions: its prompt, rendered; general ones where it has none."""
    from lamplighter.app.hooks import prompt_of

    text = prompt_of(city(), agent)
    if text or output.wants_json():
        output.record({"prompt": text}, text.rstrip("\n"))


def command_for(name: str) -> click.Command:
    return {"hook": hook, "prime": prime}[name]
