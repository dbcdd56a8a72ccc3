"""The store of work beads: the city's own, or an external one reached by a protocol."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, NewBead


class BeadStore(Protocol):
    """Calls block: a command makes one and exits, the daemon makes them on a thread.

    An unknown id raises BeadNotFound. A claim is atomic: of many claimants one wins, the others get AlreadyClaimed.
    """

    def create(self, new: NewBead, *, rig: str | None = None) -> Bead: ...

    def get(self, bead: str) -> Bead: ...

    def change(self, bead: str, wanted: BeadChange) -> Bead: ...

    def claim(self, bead: str, assignee: str) -> Bead: ...

    def close(self, bead: str) -> Bead:
        """May be repeated; closing the last step of a molecule closes the molecule."""
        ...

    def matching(self, wanted: BeadFilter, *, limit: int) -> Sequence[Bead]:
        """The newest beads that match, newest first."""
        ...

    def ready(self, *, label: str | None = None, assignee: str | None = None, limit: int = 100) -> Sequence[Bead]:
        """Open beads whose needs are all closed, oldest first."""
        ...

    def children(self, parent: str) -> Sequence[Bead]: ...

    def cook(self, plan: Plan, *, rig: str | None = None) -> Bead:
        """Create the molecule and its steps; returns the root bead."""
        ...
