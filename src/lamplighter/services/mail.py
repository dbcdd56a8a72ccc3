"""Mail in the city's own store: a message is a bead of type `message` that is open while unread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import Bead, BeadFilter, BeadStatus, NewBead
from lamplighter.domain.mail import Message, title_of
from lamplighter.kit.ids import IdSource
from lamplighter.ports.mail import AlreadyArchived, Mail, MessageUnknown
from lamplighter.services import beads
from lamplighter.store.tx import DirectStore, Tx

TYPE = "message"
MOST = 200


def send(tx: Tx, *, to: str, body: str, sender: str, prefix: str, ids: IdSource, act: Act) -> Message:  # noqa: PLR0913  a letter has that many parts
    new = NewBead(title=title_of(body), type=TYPE, assignee=to, sender=sender, description=body)
    message = _message(beads.create(tx, new, prefix=prefix, ids=ids, act=act))
    _tell(tx, "mail.sent", message, act)
    return message


def inbox(tx: Tx, recipient: str) -> list[Message]:
    """Unread messages, oldest first; of more than MOST only the newest."""
    found = tx.beads.matching(BeadFilter(status=BeadStatus.OPEN, type=TYPE, assignee=recipient), limit=MOST)
    return [_message(bead) for bead in reversed(found)]


def read(tx: Tx, bead_id: str, *, act: Act) -> Message:
    """Return the message and mark it as read. May be repeated. Raises MessageUnknown."""
    bead = _letter(tx, bead_id)
    if bead.status is not BeadStatus.CLOSED:
        beads.close(tx, bead_id, act=act)
        _tell(tx, "mail.read", _message(bead), act)
    return _message(bead)


def archive(tx: Tx, bead_id: str, *, act: Act) -> None:
    """Raises MessageUnknown, AlreadyArchived."""
    if _letter(tx, bead_id).status is BeadStatus.CLOSED:
        raise AlreadyArchived(bead_id)
    beads.close(tx, bead_id, act=act)


def _letter(tx: Tx, bead_id: str) -> Bead:
    bead = tx.beads.get(bead_id)
    if bead is None or bead.type != TYPE:
        raise MessageUnknown(bead_id)
    return bead


def _message(bead: Bead) -> Message:
    return Message(bead.id, bead.sender or "", bead.assignee or "", bead.description or bead.title, bead.created_at)


def _tell(tx: Tx, event_type: str, message: Message, act: Act) -> None:
    payload = {"from": message.sender, "to": message.to}
    tx.events.append(act.event(event_type, subject=message.id, message=message.title, payload=payload))


@dataclass(frozen=True)
class OwnMail:
    store: DirectStore
    ids: IdSource
    prefix: Callable[[], str]
    act: Callable[[str | None], Act]
    """Makes the act: its actor is the given sender, or for None whoever runs the command."""

    def send(self, *, sender: str, to: str, body: str) -> Message:
        return self.store.transact(
            send, to=to, body=body, sender=sender, prefix=self.prefix(), ids=self.ids, act=self.act(sender)
        )

    def inbox(self, recipient: str) -> Sequence[Message]:
        return self.store.read(inbox, recipient)

    def check(self, recipient: str) -> Sequence[Message]:
        return self.store.read(inbox, recipient)

    def read(self, message: str) -> Message:
        return self.store.transact(read, message, act=self.act(None))

    def archive(self, message: str) -> None:
        self.store.transact(archive, message, act=self.act(None))


@dataclass(frozen=True)
class ToldMail:
    """Mail kept outside the city; sending and reading still emit events of the city."""

    outside: Mail
    store: DirectStore
    act: Callable[[str | None], Act]

    def send(self, *, sender: str, to: str, body: str) -> Message:
        message = self.outside.send(sender=sender, to=to, body=body)
        self.store.transact(_tell, "mail.sent", message, self.act(sender))
        return message

    def inbox(self, recipient: str) -> Sequence[Message]:
        return self.outside.inbox(recipient)

    def check(self, recipient: str) -> Sequence[Message]:
        return self.outside.check(recipient)

    def read(self, message: str) -> Message:
        found = self.outside.read(message)
        self.store.transact(_tell, "mail.read", found, self.act(None))
        return found

    def archive(self, message: str) -> None:
        self.outside.archive(message)
