"""Beads: units of work with status, labels, parent and needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lamplighter.kit.errors import Conflict, NotFound


class BeadStatus(StrEnum):
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    CLOSED = "closed"


BOOKKEEPING = frozenset({"run"})
"""Types that record what the city itself did: they are never ready work and emit no `bead.*` events."""
CONTAINERS = frozenset({"convoy", "epic"})
"""Types that group other beads; a convoy closes when its last child does, unless labelled `owned`."""
MOLECULES = frozenset({"molecule", "wisp"})
"""Types of the root of a cooked formula, which closes when its last step does."""
NOT_READY = BOOKKEEPING | CONTAINERS | {"message"}

OWNED = "owned"
POOL_LABEL = "pool:"


@dataclass(frozen=True, slots=True)
class NewBead:
    title: str
    type: str = "task"
    labels: tuple[str, ...] = ()
    assignee: str | None = None
    sender: str | None = None
    parent: str | None = None
    needs: tuple[str, ...] = ()
    ref: str | None = None
    description: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    ephemeral: bool = False
    """True for a wisp, which is deleted with its steps some time after it closes."""


@dataclass(frozen=True, slots=True)
class Bead:
    id: str
    title: str
    type: str
    status: BeadStatus
    labels: tuple[str, ...]
    assignee: str | None
    sender: str | None
    parent: str | None
    root: str
    needs: tuple[str, ...]
    ref: str | None
    description: str
    metadata: Mapping[str, str]
    ephemeral: bool
    run: str | None
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class BeadFilter:
    """All conditions must hold; None means no condition."""

    status: BeadStatus | None = None
    type: str | None = None
    label: str | None = None
    assignee: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class BeadChange:
    """What an update sets; None leaves a field as it is, and empty text clears an assignee or a parent."""

    title: str | None = None
    description: str | None = None
    assignee: str | None = None
    parent: str | None = None
    status: BeadStatus | None = None
    type: str | None = None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    add_needs: tuple[str, ...] = ()
    remove_needs: tuple[str, ...] = ()
    metadata: Mapping[str, str | None] = field(default_factory=dict)
    """Keys to set; None removes one."""


class BeadNotFound(NotFound):
    def __init__(self, bead: str) -> None:
        super().__init__(f"There is no bead {bead}.", hint="`lamp bead list` shows those there are.")
        self.bead = bead


class AlreadyClaimed(Conflict):
    def __init__(self, bead: str, holder: str) -> None:
        super().__init__(f"Bead {bead} is already claimed by {holder}.", hint="Take another: `lamp bead ready`.")
        self.holder = holder


class NotClaimable(Conflict):
    def __init__(self, bead: str, why: str) -> None:
        super().__init__(f"Bead {bead} cannot be claimed: {why}.", hint="`lamp bead ready` shows what can be.")


class NeedsCycle(Conflict):
    def __init__(self, bead: str, need: str) -> None:
        super().__init__(
            f"Bead {bead} cannot need {need}: {need} already waits for {bead}.",
            hint="Remove one of the needs that make the circle.",
        )


class BelowItself(Conflict):
    def __init__(self, bead: str, parent: str) -> None:
        super().__init__(f"Bead {parent} lies below {bead}.", hint="Choose a parent outside its own tree.")
