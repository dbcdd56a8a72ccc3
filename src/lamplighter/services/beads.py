"""Beads as transactions: create, change, claim, close. Every change emits its `bead.*` event, from here alone."""

from collections.abc import Iterable
from dataclasses import replace

from lamplighter.domain.acts import Act
from lamplighter.domain.beads.model import (
    BOOKKEEPING,
    CONTAINERS,
    MOLECULES,
    OWNED,
    AlreadyClaimed,
    Bead,
    BeadChange,
    BeadNotFound,
    BeadStatus,
    NeedsCycle,
    NewBead,
    NotClaimable,
    check_word,
    checked,
)
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.store.tx import Tx

TOPIC = "beads"
SHORTEST_ID = 3
TRIES_A_LENGTH = 4


def create(tx: Tx, new: NewBead, *, prefix: str, ids: IdSource, act: Act) -> Bead:
    """Raises BeadNotFound for an unknown parent or need."""
    checked(new)
    parent = None if new.parent is None else _locked_tree(tx, new.parent)
    for need in new.needs:
        _found(tx, need)
    bead_id = _insert(tx, new, prefix=prefix, root=None if parent is None else parent.root, ids=ids, act=act)
    tx.beads.add_labels(bead_id, new.labels)
    tx.beads.add_needs(bead_id, new.needs)
    if parent is not None and parent.status is BeadStatus.CLOSED:
        _reopen(tx, parent, act)
    return _told(tx, bead_id, "bead.created", act)


def change(tx: Tx, bead_id: str, wanted: BeadChange, *, act: Act) -> Bead:
    """Raises BeadNotFound, or NeedsCycle for a need that would close a circle. Closing goes by `close`."""
    if wanted.status is BeadStatus.CLOSED:
        raise UsageError("A bead is closed with `lamp bead close`.", hint="It also closes what ends with it.")
    for label in wanted.add_labels:
        check_word(label)
    if wanted.add_needs:
        tx.cities.lock()  # two needs that close a circle together must not be added side by side
    before = _locked_tree(tx, bead_id)
    _change_needs(tx, before, wanted)
    after = _changed(before, wanted, act)
    if wanted.parent is not None:
        after = _moved(tx, before, wanted.parent or None, after)
    tx.beads.save(after)
    tx.beads.add_labels(bead_id, wanted.add_labels)
    tx.beads.remove_labels(bead_id, wanted.remove_labels)
    if before.status is BeadStatus.CLOSED and after.status is not BeadStatus.CLOSED and after.parent is not None:
        _reopen(tx, _found(tx, after.parent), act)
    return _told(tx, bead_id, "bead.updated", act)


def claim(tx: Tx, bead_id: str, assignee: str, *, act: Act) -> Bead:
    """Give an open, ready bead to `assignee`; a repeated claim by its holder changes nothing.

    Raises AlreadyClaimed for somebody else's, NotClaimable for one that is closed or still waits.
    """
    before = tx.beads.lock(bead_id)
    if before is None:
        raise BeadNotFound(bead_id)
    if before.status is BeadStatus.CLOSED:
        raise NotClaimable(bead_id, "it is closed")
    if before.assignee is not None and before.assignee != assignee:
        raise AlreadyClaimed(bead_id, before.assignee)
    if before.status is BeadStatus.IN_PROGRESS and before.assignee == assignee:
        return before
    unmet = tx.beads.unmet_needs(bead_id)
    if unmet:
        raise NotClaimable(bead_id, f"it waits for {', '.join(unmet)}")
    tx.beads.save(replace(before, status=BeadStatus.IN_PROGRESS, assignee=assignee, updated_at=act.at))
    return _told(tx, bead_id, "bead.updated", act)


def release(tx: Tx, bead_id: str, *, act: Act) -> Bead:
    """Put a claimed bead back, for somebody else to take."""
    before = tx.beads.lock(bead_id)
    if before is None:
        raise BeadNotFound(bead_id)
    if before.status is not BeadStatus.IN_PROGRESS:
        return before
    tx.beads.save(replace(before, status=BeadStatus.OPEN, assignee=None, updated_at=act.at))
    return _told(tx, bead_id, "bead.updated", act)


def close(tx: Tx, bead_id: str, *, act: Act) -> Bead:
    """Close a bead, and what ends with it: its molecule or convoy when it was the last one open. May be repeated."""
    before = _locked_tree(tx, bead_id)
    if before.status is BeadStatus.CLOSED:
        return before
    closed = _close_one(tx, before, act)
    _close_finished_parents(tx, closed, act)
    return closed


def get(tx: Tx, bead_id: str) -> Bead:
    return _found(tx, bead_id)


def _insert(tx: Tx, new: NewBead, *, prefix: str, root: str | None, ids: IdSource, act: Act) -> str:
    """Ids are short for people's sake, so one may be taken: try a few, then a longer one."""
    for length in range(SHORTEST_ID, SHORTEST_ID + 8):
        for _ in range(TRIES_A_LENGTH):
            bead_id = f"{prefix}-{ids.short(length)}"
            if tx.beads.insert(bead_id, new, root=root or bead_id, run=act.run, now=act.at):
                return bead_id
    raise Conflict("No free bead id was found.", hint="This should not happen; please report it.")


def _locked_tree(tx: Tx, bead_id: str) -> Bead:
    """The bead, with its root row locked first: whoever ends or reopens parts of one tree goes in single file."""
    root = tx.beads.root_of(bead_id)
    if root is None:
        raise BeadNotFound(bead_id)
    if root != bead_id:
        tx.beads.lock(root)
    bead = tx.beads.lock(bead_id)
    if bead is None:
        raise BeadNotFound(bead_id)
    return bead


def _found(tx: Tx, bead_id: str) -> Bead:
    bead = tx.beads.get(bead_id)
    if bead is None:
        raise BeadNotFound(bead_id)
    return bead


def _changed(before: Bead, wanted: BeadChange, act: Act) -> Bead:
    status = before.status if wanted.status is None else wanted.status
    metadata = {**before.metadata, **wanted.metadata}
    return replace(
        before,
        title=before.title if wanted.title is None else wanted.title,
        type=before.type if wanted.type is None else wanted.type,
        description=before.description if wanted.description is None else wanted.description,
        assignee=before.assignee if wanted.assignee is None else wanted.assignee or None,
        status=status,
        closed_at=before.closed_at if status is BeadStatus.CLOSED else None,
        metadata={key: value for key, value in metadata.items() if value is not None},
        updated_at=act.at,
    )


def _change_needs(tx: Tx, bead: Bead, wanted: BeadChange) -> None:
    tx.beads.remove_needs(bead.id, wanted.remove_needs)
    for need in wanted.add_needs:
        _found(tx, need)
        if need == bead.id or tx.beads.waits_for(need, bead.id):
            raise NeedsCycle(bead.id, need)
        tx.beads.add_needs(bead.id, [need])


def _moved(tx: Tx, before: Bead, parent: str | None, after: Bead) -> Bead:
    root = before.id
    if parent is not None:
        above = _locked_tree(tx, parent)
        if above.id == before.id or before.id in _ancestors(tx, above):
            raise Conflict(f"Bead {parent} lies below {before.id}.", hint="Choose a parent outside its own tree.")
        root = above.root
    tx.beads.move_subtree(before.id, root)
    return replace(after, parent=parent, root=root)


def _ancestors(tx: Tx, bead: Bead) -> Iterable[str]:
    while bead.parent is not None:
        yield bead.parent
        bead = _found(tx, bead.parent)


def _close_one(tx: Tx, bead: Bead, act: Act) -> Bead:
    tx.beads.save(replace(bead, status=BeadStatus.CLOSED, closed_at=act.at, updated_at=act.at))
    return _told(tx, bead.id, "bead.closed", act)


def _close_finished_parents(tx: Tx, bead: Bead, act: Act) -> None:
    while bead.parent is not None:
        parent = tx.beads.lock(bead.parent)
        if parent is None or not _ends_with_children(parent) or tx.beads.has_open_child(parent.id):
            return
        bead = _close_one(tx, parent, act)
        if parent.type == "convoy":
            tx.events.append(act.event("convoy.closed", subject=parent.id, message=parent.title))


def _ends_with_children(bead: Bead) -> bool:
    if bead.status is BeadStatus.CLOSED:
        return False
    return bead.type in MOLECULES or (bead.type in CONTAINERS and bead.type == "convoy" and OWNED not in bead.labels)


def _reopen(tx: Tx, bead: Bead, act: Act) -> None:
    """A closed molecule or convoy with open work below it is open again, all the way up."""
    while bead.status is BeadStatus.CLOSED and bead.type in MOLECULES | CONTAINERS:
        tx.beads.save(replace(bead, status=BeadStatus.OPEN, closed_at=None, updated_at=act.at))
        _told(tx, bead.id, "bead.updated", act)
        if bead.parent is None:
            return
        bead = _found(tx, bead.parent)


def _told(tx: Tx, bead_id: str, event_type: str, act: Act) -> Bead:
    bead = _found(tx, bead_id)
    tx.wake(TOPIC)
    if bead.type not in BOOKKEEPING:
        tx.events.append(act.event(event_type, subject=bead.id, message=bead.title, payload=bead.as_json()))
    return bead
