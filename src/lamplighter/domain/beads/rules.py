"""Pure rules about a bead's type, labels and status that every bead store follows."""

from dataclasses import replace
from datetime import datetime

from lamplighter.domain.beads.model import (
    CONTAINERS,
    MOLECULES,
    NOT_READY,
    OWNED,
    POOL_LABEL,
    Bead,
    BeadChange,
    BeadStatus,
)


def workable(bead: Bead) -> bool:
    """Whether the bead can be taken once its needs are met; a molecule only with an assignee or a pool label."""
    if bead.status is not BeadStatus.OPEN or bead.type in NOT_READY:
        return False
    routed = bead.assignee is not None or any(label.startswith(POOL_LABEL) for label in bead.labels)
    return bead.type not in MOLECULES or routed


def ends_with_children(bead: Bead) -> bool:
    """Whether closing its last open child closes the bead too."""
    if bead.status is BeadStatus.CLOSED:
        return False
    return bead.type in MOLECULES or (bead.type == "convoy" and OWNED not in bead.labels)


def opens_with_children(bead: Bead) -> bool:
    """Whether an open child reopens the bead."""
    return bead.status is BeadStatus.CLOSED and bead.type in MOLECULES | CONTAINERS


def changed(before: Bead, wanted: BeadChange, now: datetime) -> Bead:
    """The bead after the change, except for its root; the same object if nothing changes."""
    status = before.status if wanted.status is None else wanted.status
    metadata = {**before.metadata, **wanted.metadata}
    after = replace(
        before,
        title=before.title if wanted.title is None else wanted.title,
        type=before.type if wanted.type is None else wanted.type,
        description=before.description if wanted.description is None else wanted.description,
        assignee=before.assignee if wanted.assignee is None else wanted.assignee or None,
        parent=before.parent if wanted.parent is None else wanted.parent or None,
        status=status,
        closed_at=before.closed_at if status is BeadStatus.CLOSED else None,
        labels=_with(before.labels, wanted.add_labels, wanted.remove_labels),
        needs=_with(before.needs, wanted.add_needs, wanted.remove_needs),
        metadata={key: value for key, value in metadata.items() if value is not None},
    )
    return before if after == before else replace(after, updated_at=now)


def _with(have: tuple[str, ...], added: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*have, *added} - {*removed}))
