"""The transactions on beads: create, change, claim, release, close; only this module emits `bead.*` events for them."""

from collections.abc import Iterable
from dataclasses import replace

from lamplighter.domain.beads.checks import checked, checked_assignee, checked_change
from lamplighter.domain.beads.model import (
    BOOKKEEPING,
    MOLECULES,
    AlreadyClaimed,
    Bead,
    BeadChange,
    BeadNotFound,
    BeadStatus,
    BelowItself,
    NeedsCycle,
    NewBead,
    NotClaimable,
)
from lamplighter.domain.beads.rules import changed, ends_with_children, opens_with_children
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import to_json
from lamplighter.services.beads.views import view
from lamplighter.services.context import Context
from lamplighter.store.tx import Tx

TOPIC = "beads"
SHORTEST_ID = 3
TRIES_A_LENGTH = 4


class LabelGiven(Conflict):
    def __init__(self, bead: str, label: str) -> None:
        super().__init__(f"{bead} has the label `{label}` from the run it tracks.", hint="It cannot be taken off.")


def create(tx: Tx, new: NewBead, *, prefix: str, ctx: Context) -> Bead:
    """Raises BeadNotFound for an unknown parent or need."""
    checked(new)
    parent = None if new.parent is None else _locked_tree(tx, new.parent)
    for need in new.needs:
        _found(tx, need)
    bead_id = _insert(tx, new, prefix=prefix, below=parent, ctx=ctx)
    tx.beads.add_labels(bead_id, new.labels)
    tx.beads.add_needs(bead_id, new.needs)
    if parent is not None and opens_with_children(parent):
        _reopen_from(tx, parent.id, ctx)
    return _told(tx, bead_id, "bead.created", ctx)


def change(tx: Tx, bead_id: str, wanted: BeadChange, *, ctx: Context) -> Bead:
    """Raises BeadNotFound, BelowItself, LabelGiven, or NeedsCycle for a need that would close a circle.

    Status `closed` raises UsageError: use `close`. A change without effect writes nothing and emits no event.
    """
    checked_change(wanted)
    if wanted.add_needs:
        tx.cities.lock()  # two concurrent transactions must not add needs that together close a circle
    before = _locked_tree(tx, bead_id)
    if wanted.remove_labels and (given := {*wanted.remove_labels}.intersection(tx.beads.given_labels(before))):
        raise LabelGiven(bead_id, min(given))
    after = changed(before, wanted, ctx.now)
    if after is before:
        return before
    _change_needs(tx, before, after)
    if after.parent != before.parent:
        _move(tx, before, after.parent)
    tx.beads.save(after)
    tx.beads.remove_labels(bead_id, set(before.labels) - set(after.labels))
    tx.beads.add_labels(bead_id, set(after.labels) - set(before.labels))
    if after.status is not BeadStatus.CLOSED and (before.status, before.parent) != (after.status, after.parent):
        _reopen_from(tx, after.parent, ctx)
    return _told(tx, bead_id, "bead.updated", ctx)


def claim(tx: Tx, bead_id: str, assignee: str, *, ctx: Context) -> Bead:
    """Give an open, ready bead to `assignee`; a repeated claim by its holder changes nothing.

    Raises AlreadyClaimed when another assignee has it, NotClaimable when it is closed or has unmet needs.
    """
    checked_assignee(assignee)
    before = _locked(tx, bead_id)
    if before.status is BeadStatus.CLOSED:
        raise NotClaimable(bead_id, "it is closed")
    if before.assignee is not None and before.assignee != assignee:
        raise AlreadyClaimed(bead_id, before.assignee)
    if before.status is BeadStatus.IN_PROGRESS and before.assignee == assignee:
        return before
    unmet = tx.beads.unmet_needs(bead_id)
    if unmet:
        raise NotClaimable(bead_id, f"it waits for {', '.join(unmet)}")
    tx.beads.save(replace(before, status=BeadStatus.IN_PROGRESS, assignee=assignee, updated_at=ctx.now))
    return _told(tx, bead_id, "bead.updated", ctx)


def release(tx: Tx, bead_id: str, *, ctx: Context) -> Bead:
    """Make a bead in progress open and unassigned again; a bead in any other state is left as it is."""
    before = _locked(tx, bead_id)
    if before.status is not BeadStatus.IN_PROGRESS:
        return before
    tx.beads.save(replace(before, status=BeadStatus.OPEN, assignee=None, updated_at=ctx.now))
    return _told(tx, bead_id, "bead.updated", ctx)


def close(tx: Tx, bead_id: str, *, ctx: Context) -> Bead:
    """Close a bead, and also its molecule or convoy when it was the last open child. May be repeated."""
    before = _locked_tree(tx, bead_id)
    if before.status is BeadStatus.CLOSED:
        return before
    closed = _close_one(tx, before, ctx)
    _close_finished_parents(tx, closed, ctx)
    return closed


def get(tx: Tx, bead_id: str) -> Bead:
    return _found(tx, bead_id)


def _insert(tx: Tx, new: NewBead, *, prefix: str, below: Bead | None, ctx: Context) -> str:
    """Insert the bead under a free id. Ids are short for people and may be taken: try a few, then longer ones."""
    run = ctx.run or (below.run if below is not None and below.type in MOLECULES else None)
    for length in range(SHORTEST_ID, SHORTEST_ID + 8):
        for _ in range(TRIES_A_LENGTH):
            bead_id = f"{prefix}-{ctx.ids.short(length)}"
            root = bead_id if below is None else below.root
            if tx.beads.insert(bead_id, new, root=root, run=run, now=ctx.now):
                return bead_id
    raise Conflict("No free bead id was found.", hint="This should not happen; please report it.")


def _locked_tree(tx: Tx, bead_id: str) -> Bead:
    """Lock the root's row, then the bead: transactions that close or reopen parts of one tree run one after another."""
    root = tx.beads.root_of(bead_id)
    while root is not None:
        if root != bead_id:
            tx.beads.lock(root)
        bead = _locked(tx, bead_id)
        if bead.root == root:
            return bead
        root = bead.root  # it was moved to another tree while we waited for the lock
    raise BeadNotFound(bead_id)


def _locked(tx: Tx, bead_id: str) -> Bead:
    bead = tx.beads.lock(bead_id)
    if bead is None:
        raise BeadNotFound(bead_id)
    return bead


def _found(tx: Tx, bead_id: str) -> Bead:
    bead = tx.beads.get(bead_id)
    if bead is None:
        raise BeadNotFound(bead_id)
    return bead


def _change_needs(tx: Tx, before: Bead, after: Bead) -> None:
    tx.beads.remove_needs(before.id, set(before.needs) - set(after.needs))
    for need in sorted(set(after.needs) - set(before.needs)):
        _found(tx, need)
        if need == before.id or tx.beads.waits_for(need, before.id):
            raise NeedsCycle(before.id, need)
        tx.beads.add_needs(before.id, [need])


def _move(tx: Tx, bead: Bead, parent: str | None) -> None:
    root = bead.id
    if parent is not None:
        above = _locked_tree(tx, parent)
        if above.id == bead.id or bead.id in _ancestors(tx, above):
            raise BelowItself(bead.id, parent)
        root = above.root
    tx.beads.move_subtree(bead.id, root)


def _ancestors(tx: Tx, bead: Bead) -> Iterable[str]:
    while bead.parent is not None:
        yield bead.parent
        bead = _found(tx, bead.parent)


def _close_one(tx: Tx, bead: Bead, ctx: Context) -> Bead:
    tx.beads.save(replace(bead, status=BeadStatus.CLOSED, closed_at=ctx.now, updated_at=ctx.now))
    return _told(tx, bead.id, "bead.closed", ctx)


def _close_finished_parents(tx: Tx, bead: Bead, ctx: Context) -> None:
    while bead.parent is not None:
        parent = tx.beads.lock(bead.parent)
        if parent is None or not ends_with_children(parent) or tx.beads.has_open_child(parent.id):
            return
        bead = _close_one(tx, parent, ctx)
        if parent.type == "convoy":
            tx.events.append(ctx.event("convoy.closed", subject=parent.id, message=parent.title))


def _reopen_from(tx: Tx, bead_id: str | None, ctx: Context) -> None:
    """Reopen the closed molecule or container that now has open work below it, and its closed ancestors."""
    while bead_id is not None:
        bead = _locked(tx, bead_id)
        if not opens_with_children(bead):
            return
        tx.beads.save(replace(bead, status=BeadStatus.OPEN, closed_at=None, updated_at=ctx.now))
        bead_id = _told(tx, bead.id, "bead.updated", ctx).parent


def _told(tx: Tx, bead_id: str, event_type: str, ctx: Context) -> Bead:
    bead = _found(tx, bead_id)
    tx.wake(TOPIC)
    if bead.type not in BOOKKEEPING:
        caused = ctx if ctx.run is not None else ctx.inside(bead.run)
        tx.events.append(caused.event(event_type, subject=bead.id, message=bead.title, payload=to_json(view(bead))))
    return bead
