"""`lamp mail`: messages between agents and people."""

from typing import Any

import click

from lamplighter.cli import base, output, words
from lamplighter.cli.completing import names
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.kit.errors import LampError
from lamplighter.kit.shapes import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.mail import MessageArchived, MessageView, ReadInbox

COLUMNS = {"ID": Col("id", "word"), "FROM": "from", "SENT": Col("sent", "when"), "MESSAGE": "title"}
REMINDER = """\
<system-reminder>
You have {count}:

{lines}

`lamp mail read ID` shows one and marks it read.
</system-reminder>"""


def _inbox(found: "list[MessageView]", ask: "ReadInbox") -> None:
    rows = [{"id": one.id, "from": one.sender, "sent": one.created_at, "title": one.title} for one in found]
    output.table(rows, COLUMNS, empty="No mail.")
    if len(found) >= ask.limit:
        output.note(f"these are the newest {ask.limit}; `--limit` shows more, and `lamp mail read ID` marks one read")


def _read(message: "MessageView", _ask: Any) -> None:
    head = f"From {message.sender or 'nobody'} to {message.to}, {output.local_time(message.created_at)}"
    output.text(f"{head.rstrip(', ')}\n\n{message.body}")


def _archived(gone: "MessageArchived", _ask: Any) -> None:
    click.echo(f"Archived {gone.id}.")


mail = Subject("mail", "Messages between agents and people.", {"inbox": _inbox, "read": _read, "archive": _archived})


@mail.command("send")
@click.argument("to", required=False, shell_complete=names("agent"))
@click.argument("body", nargs=-1)
@click.option("--from", "sender", help="Who writes; the agent whose session this is, else `human`, when left out.")
@click.option("--all", "everybody", is_flag=True, help="To every agent; leave TO out.")
@click.option("--notify", is_flag=True, help="Also nudge who is running.")
@carries_out("mail.send")
def send(to: str | None, body: tuple[str, ...], sender: str | None, *, everybody: bool, notify: bool) -> None:
    """Write BODY to the agent TO, or to `human`."""
    from lamplighter.services.mail import SEND, SendMail

    words = " ".join((to, *body) if everybody and to else body)
    done = do(SEND, SendMail(words, to, sender, everybody))
    if notify:
        _notify([one.to for one in done.sent], sender or base.settings().actor)
    output.record(to_json(done), "\n".join(f"Sent message {one.id} to {one.to}." for one in done.sent))


@mail.command("check")
@click.argument("agent", required=False)
@click.option("--inject", is_flag=True, help="As a reminder for the agent's program; always succeeds.")
@carries_out("mail.check")
def check(agent: str | None, *, inject: bool) -> None:
    """How many messages are unread; fails when there are none."""
    from lamplighter.services.mail import CHECK, MOST, SHOWN, CheckMail

    try:
        if inject and base.remote() is None:
            base.city()  # opened first without patience: a reminder must not make the agent's program wait
        found = do(CHECK, CheckMail(agent, SHOWN if inject else MOST))
    except LampError:
        if not inject:
            raise
        return
    if inject:
        if found:
            lines = "\n".join(output.plain(f"{one.id}  from {one.sender or 'nobody'}: {one.title}") for one in found)
            more = " or more; these are the newest" if len(found) >= SHOWN else ""
            count = words.counted(len(found), "unread message") + more
            click.echo(REMINDER.format(count=count, lines=lines))
        return
    output.record({"unread": len(found)}, f"{len(found)} unread." if found else "No mail.")
    if not found:
        click.get_current_context().exit(1)


def _notify(recipients: list[str], author: str) -> None:
    from lamplighter.services.agents.operations import NUDGE, NudgeAgent

    for name in recipients:
        try:
            do(NUDGE, NudgeAgent(name, f"You have mail from {author}: run `lamp mail inbox`."))
        except LampError as error:
            click.echo(f"{name} was not nudged: {error.message}", err=True)


def command_for(_name: str) -> click.Command:
    return mail
