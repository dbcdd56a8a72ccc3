"""Mail between agents and people: beads of type `message`, open while unread."""

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import Bead, BeadFilter, BeadStatus, NewBead
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.services import beads
from lamplighter.store.tx import Tx

TYPE = "message"
HUMAN = "human"
MOST = 200
LONGEST_TITLE = 120


def send(tx: Tx, *, to: str, body: str, sender: str, prefix: str, ids: IdSource, act: Act) -> Bead:  # noqa: PLR0913  a letter has that many parts
    text = body.strip()
    if not text:
        raise UsageError("The message is empty.", hint="Write something.")
    title = text.splitlines()[0][:LONGEST_TITLE]
    new = NewBead(title=title, type=TYPE, assignee=to, sender=sender, description=text)
    bead = beads.create(tx, new, prefix=prefix, ids=ids, act=act)
    tx.events.append(act.event("mail.sent", subject=bead.id, message=title, payload={"from": sender, "to": to}))
    return bead


def inbox(tx: Tx, recipient: str) -> list[Bead]:
    """Unread mail, oldest first."""
    found = tx.beads.matching(BeadFilter(status=BeadStatus.OPEN, type=TYPE, assignee=recipient), limit=MOST)
    return list(reversed(found))


def read(tx: Tx, bead_id: str, *, act: Act) -> Bead:
    """The message, and from now on it counts as read; may be repeated. Raises NotFound for what is no message."""
    bead = tx.beads.get(bead_id)
    if bead is None or bead.type != TYPE:
        raise NotFound(f"There is no message {bead_id}.", hint="`lamp mail inbox` shows those there are.")
    if bead.status is BeadStatus.CLOSED:
        return bead
    closed = beads.close(tx, bead_id, act=act)
    tx.events.append(act.event("mail.read", subject=bead_id, message=bead.title))
    return closed
