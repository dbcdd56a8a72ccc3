"""Mail: in the city's own store a message is a bead of type `message` that is open while unread."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.beads.model import Bead, BeadFilter, BeadStatus, NewBead
from lamplighter.domain.city.names import find_agent, instance_names
from lamplighter.domain.mail import HUMAN, Message, title_of
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import given
from lamplighter.ports.mail import AlreadyArchived, MessageUnknown
from lamplighter.services.beads import changes as beads
from lamplighter.services.beads.operations import prefix_for
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.services.operation import read as operation_read
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.ports.mail import Mail

TYPE = "message"
SHOWN = 200
MOST = 10_000


def send(tx: Tx, *, to: str, body: str, sender: str, prefix: str, ctx: Context) -> Message:
    new = NewBead(title=title_of(body), type=TYPE, assignee=to, sender=sender, description=body)
    message = _message(beads.create(tx, new, prefix=prefix, ctx=ctx))
    _tell(tx, "mail.sent", message, ctx)
    return message


def inbox(tx: Tx, recipient: str, *, limit: int = SHOWN) -> list[Message]:
    """Unread messages, oldest first; of more than `limit` only the newest."""
    found = tx.beads.matching(BeadFilter(status=BeadStatus.OPEN, type=TYPE, assignee=recipient), limit=limit)
    return [_message(bead) for bead in reversed(found)]


def read(tx: Tx, bead_id: str, *, ctx: Context) -> Message:
    """Return the message and mark it as read. May be repeated. Raises MessageUnknown."""
    bead = _letter(tx, bead_id)
    if bead.status is not BeadStatus.CLOSED:
        beads.close(tx, bead_id, ctx=ctx)
        _tell(tx, "mail.read", _message(bead), ctx)
    return _message(bead)


def archive(tx: Tx, bead_id: str, *, ctx: Context) -> None:
    """Raises MessageUnknown, AlreadyArchived."""
    if _letter(tx, bead_id).status is BeadStatus.CLOSED:
        raise AlreadyArchived(bead_id)
    beads.close(tx, bead_id, ctx=ctx)


def _letter(tx: Tx, bead_id: str) -> Bead:
    bead = tx.beads.get(bead_id)
    if bead is None or bead.type != TYPE:
        raise MessageUnknown(bead_id)
    return bead


def _message(bead: Bead) -> Message:
    return Message(bead.id, bead.sender or "", bead.assignee or "", bead.description or bead.title, bead.created_at)


def _tell(tx: Tx, event_type: str, message: "Message | MessageView", ctx: Context) -> None:
    payload = {"from": message.sender or "", "to": message.to}
    tx.events.append(ctx.event(event_type, subject=message.id, message=message.title, payload=payload))


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class MessageView:
    id: str
    sender: str | None = given("Who wrote it.", key="from")
    to: str = given("For whom it is.")
    title: str = given("Its first line.")
    body: str = given("All of it.")
    created_at: datetime | None = given("When it was sent.")


@dataclass(frozen=True)
class MailSent:
    sent: Sequence[MessageView]


@dataclass(frozen=True)
class MessageArchived:
    id: str
    archived: bool = True


@dataclass(frozen=True)
class SendMail:
    """Write BODY to the agent TO, or to `human`."""

    body: str = given("What is written.")
    to: str | None = given("An agent, or `human`.", default=None)
    sender: str | None = given("Who writes; yourself when left out.", key="from", default=None)
    everybody: bool = given("To every agent; leave the recipient out.", key="all", default=False)


@dataclass(frozen=True)
class ReadInbox:
    """Unread mail of an agent, or of `human`, oldest first; of more than `limit` messages the newest."""

    agent: str | None = given("Whose; your own when left out.", default=None, positional=True, names="agent")
    limit: int = given("At most so many.", default=SHOWN, least=1, most=MOST)


@dataclass(frozen=True)
class CheckMail:
    """Unread mail, for whoever must change nothing by asking; of more than `limit` messages the newest."""

    agent: str | None = given("Whose; your own when left out.", default=None, positional=True, names="agent")
    limit: int = given("At most so many.", default=SHOWN, least=1, most=MOST)


@dataclass(frozen=True)
class ReadMessage:
    """Show a message and mark it read."""

    message: str = given("The message.", key="id", metavar="ID", positional=True, names="bead")


@dataclass(frozen=True)
class ArchiveMessage:
    """Be done with a message without reading it."""

    message: str = given("The message.", key="id", metavar="ID", positional=True, names="bead")


def send_mail(tx: Tx, ask: SendMail, ctx: Context) -> MailSent:
    """Raises UsageError for a message without words or to nobody, NotFound for an unknown agent."""
    recipients, writing = _recipients(ask, ctx), _writing(ask, ctx)
    prefix, sender, body = prefix_for(None, ctx), writing.actor.name, ask.body.strip()
    return MailSent([view(send(tx, to=to, body=body, sender=sender, prefix=prefix, ctx=writing)) for to in recipients])


def read_inbox(tx: Tx, ask: ReadInbox | CheckMail, ctx: Context) -> list[MessageView]:
    """Raises NotFound for an unknown agent."""
    return [view(one) for one in inbox(tx, _reader(ask.agent, ctx), limit=ask.limit)]


def read_message(tx: Tx, ask: ReadMessage, ctx: Context) -> MessageView:
    return view(read(tx, ask.message, ctx=ctx))


def archive_message(tx: Tx, ask: ArchiveMessage, ctx: Context) -> MessageArchived:
    archive(tx, ask.message, ctx=ctx)
    return MessageArchived(ask.message)


def view(message: Message) -> MessageView:
    return MessageView(message.id, message.sender or None, message.to, message.title, message.body, message.created_at)


def _writing(ask: SendMail, ctx: Context) -> Context:
    """The same with the one who writes as the actor."""
    return ctx if not ask.sender else changed(ctx, actor=changed(ctx.actor, name=ask.sender))


def _recipients(ask: SendMail, ctx: Context) -> list[str]:
    author = ask.sender or ctx.actor.name
    found = [name for name in _names(ctx) if name != author] if ask.everybody else [_recipient(ask.to, ctx)]
    if not ask.body.strip():
        raise UsageError("The message is empty.", hint="Write something.")
    return found


def _reader(agent: str | None, ctx: Context) -> str:
    who = agent or ctx.actor.name
    return who if who in {HUMAN, ctx.actor.name} else _recipient(who, ctx)


def _names(ctx: Context) -> list[str]:
    return [name for agent in ctx.city.agents for name in instance_names(agent)]


def _recipient(to: str | None, ctx: Context) -> str:
    if not to:
        raise UsageError("The message is to nobody.", hint="`lamp mail send NAME TEXT`, or --all.")
    if to == HUMAN:
        return to
    found = find_agent(ctx.city.agents, to, rig=ctx.actor.rig or "")
    if found is None:
        raise NotFound(
            f"There is no agent `{to}`{full_stop(to, _names(ctx))}",
            hint="`lamp agent list` shows them; people are `human`.",
        )
    return found[1]


# ── kept by another program ───────────────────────────────────────────────────────────────────────────────────────


def _send_outside(mail: "Mail", ask: SendMail, ctx: Context) -> MailSent:
    sender, body = _writing(ask, ctx).actor.name, ask.body.strip()
    return MailSent([view(mail.send(sender=sender, to=to, body=body)) for to in _recipients(ask, ctx)])


def _inbox_outside(mail: "Mail", ask: ReadInbox, ctx: Context) -> list[MessageView]:
    return [view(one) for one in mail.inbox(_reader(ask.agent, ctx))[-ask.limit :]]


def _check_outside(mail: "Mail", ask: CheckMail, ctx: Context) -> list[MessageView]:
    return [view(one) for one in mail.check(_reader(ask.agent, ctx))[-ask.limit :]]


def _read_outside(mail: "Mail", ask: ReadMessage, _ctx: Context) -> MessageView:
    return view(mail.read(ask.message))


def _archive_outside(mail: "Mail", ask: ArchiveMessage, _ctx: Context) -> MessageArchived:
    mail.archive(ask.message)
    return MessageArchived(ask.message)


def _record_sent(tx: Tx, done: MailSent, ctx: Context) -> None:
    for one in done.sent:
        _tell(tx, "mail.sent", one, changed(ctx, actor=changed(ctx.actor, name=one.sender or ctx.actor.name)))


def _record_read(tx: Tx, done: MessageView, ctx: Context) -> None:
    _tell(tx, "mail.read", done, ctx)


SEND = transaction(
    "mail.send", Verb.WRITE_MAIL, SendMail, MailSent, send_mail,
    needs=Need.CONFIG, elsewhere=_send_outside, recorded=_record_sent, patient=True,
    http=Http("POST", "/mail", status=201),
)  # fmt: skip
INBOX = operation_read(
    "mail.inbox", Verb.READ, ReadInbox, list[MessageView], read_inbox,
    needs=Need.CONFIG, elsewhere=_inbox_outside, patient=True, http=Http("GET", "/mail"),
)  # fmt: skip
CHECK = operation_read(
    "mail.check", Verb.READ, CheckMail, list[MessageView], read_inbox,
    needs=Need.CONFIG, elsewhere=_check_outside, patient=True, http=Http("GET", "/mail/unread"),
)  # fmt: skip
READ = transaction(
    "mail.read", Verb.WRITE_MAIL, ReadMessage, MessageView, read_message,
    elsewhere=_read_outside, recorded=_record_read, patient=True, repeatable=True,
    http=Http("POST", "/mail/{message}/read"),
)  # fmt: skip
ARCHIVE = transaction(
    "mail.archive", Verb.WRITE_MAIL, ArchiveMessage, MessageArchived, archive_message,
    elsewhere=_archive_outside, patient=True, http=Http("POST", "/mail/{message}/archive"),
)  # fmt: skip
