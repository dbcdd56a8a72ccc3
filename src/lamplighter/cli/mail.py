"""`lamp mail`: messages between agents and people."""

import click

from lamplighter.cli import base, output
from lamplighter.cli.base import group
from lamplighter.cli.base import patient_city as city
from lamplighter.domain.mail import HUMAN
from lamplighter.kit.errors import LampError, NotFound, UsageError
from lamplighter.kit.nearest import full_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.mail import Mail

mail = group("Messages between agents and people.")

COLUMNS = {"ID": "id", "FROM": "from", "SENT": "sent", "MESSAGE": "title"}
REMINDER = """\
<system-reminder>
You have {count} unread messages:

{lines}

`lamp mail read ID` shows one and marks it read.
</system-reminder>"""


@mail.command("send")
@click.argument("to", required=False)
@click.argument("body", nargs=-1)
@click.option("--from", "sender", help="Who writes; the agent whose session this is, else `human`, when left out.")
@click.option("--all", "everybody", is_flag=True, help="To every agent; leave TO out.")
@click.option("--notify", is_flag=True, help="Also nudge who is running.")
def send(to: str | None, body: tuple[str, ...], sender: str | None, *, everybody: bool, notify: bool) -> None:
    """Write BODY to the agent TO, or to `human`."""
    opened = city()
    words = " ".join((to, *body) if everybody and to else body)
    author = sender or opened.settings.actor
    recipients = [name for name in _names() if name != author] if everybody else [_recipient(to)]
    if not words.strip():
        raise UsageError("The message is empty.", hint="Write something.")
    box = _box()
    sent = [box.send(sender=author, to=name, body=words.strip()) for name in recipients]
    if notify:
        _notify(recipients, author)
    rows = [message.as_json() for message in sent]
    output.record({"sent": rows}, "\n".join(f"Sent message {message.id} to {message.to}." for message in sent))


@mail.command("inbox")
@click.argument("agent", required=False)
def inbox(agent: str | None) -> None:
    """Unread mail of an agent, or of `human`."""
    rows = [message.as_json() for message in _box().inbox(_reader(agent))]
    shown = rows if output.wants_json() else [row | {"sent": output.local(row["created_at"])} for row in rows]
    output.table(shown, COLUMNS, empty="No mail.")


@mail.command("check")
@click.argument("agent", required=False)
@click.option("--inject", is_flag=True, help="As a reminder for the agent's program; always succeeds.")
def check(agent: str | None, *, inject: bool) -> None:
    """How many messages are unread; fails when there are none."""
    try:
        if inject:
            base.city()  # opened first without patience: a reminder must not make the agent's program wait
        found = _box().check(_reader(agent))
    except LampError:
        if not inject:
            raise
        return
    if inject:
        if found:
            lines = "\n".join(output.plain(f"{one.id}  from {one.sender or 'nobody'}: {one.title}") for one in found)
            click.echo(REMINDER.format(count=len(found), lines=lines))
        return
    output.record({"unread": len(found)}, f"{len(found)} unread." if found else "No mail.")
    if not found:
        click.get_current_context().exit(1)


@mail.command("read")
@click.argument("message_id", metavar="ID")
def read(message_id: str) -> None:
    """Show a message and mark it read."""
    message = _box().read(message_id)
    head = f"From {message.sender or 'nobody'} to {message.to}, {output.local(message.as_json()['created_at'])}"
    output.record(message.as_json(), output.plain(f"{head.rstrip(', ')}\n\n{message.body}"))


@mail.command("archive")
@click.argument("message_id", metavar="ID")
def archive(message_id: str) -> None:
    """Be done with a message without reading it."""
    _box().archive(message_id)
    output.record({"id": message_id, "archived": True}, f"Archived {message_id}.")


def _box() -> "Mail":
    from lamplighter.app.mail import mail_of

    return mail_of(city())


def _reader(agent: str | None) -> str:
    opened = city()
    who = agent or opened.settings.actor
    return who if who in {HUMAN, opened.settings.actor} else _recipient(who)


def _names() -> list[str]:
    from lamplighter.domain.city.names import instance_names

    return [name for agent in city().config.city.agents for name in instance_names(agent)]


def _recipient(to: str | None) -> str:
    from lamplighter.domain.city.names import find_agent

    if not to:
        raise UsageError("The message is to nobody.", hint="`lamp mail send NAME TEXT`, or --all.")
    if to == HUMAN:
        return to
    env = city().settings.env
    found = find_agent(city().config.city.agents, to, rig=env.get("LAMP_RIG") or env.get("GC_RIG") or "")
    if found is None:
        raise NotFound(
            f"There is no agent `{to}`{full_stop(to, _names())}",
            hint="`lamp agent list` shows them; people are `human`.",
        )
    return found[1]


def _notify(recipients: list[str], author: str) -> None:
    from lamplighter.app.agents import Agents

    agents = Agents(city())
    for name in recipients:
        try:
            agents.nudge(agents.named(name), f"You have mail from {author}: run `lamp mail inbox`.")
        except LampError as error:
            click.echo(f"{name} was not nudged: {error.message}", err=True)


def command_for(_name: str) -> click.Command:
    return mail
