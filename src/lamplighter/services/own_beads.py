"""The BeadStore port implemented by the city's own store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import Bead, BeadChange, BeadFilter, NewBead
from lamplighter.services import formulas
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import Context
from lamplighter.store.tx import DirectStore


@dataclass(frozen=True)
class OwnBeads:
    store: DirectStore
    prefix: Callable[[str | None], str]
    """The prefix of bead ids in a rig, or in the city for None."""
    context: Callable[[], Context]

    def create(self, new: NewBead, *, rig: str | None = None) -> Bead:
        return self.store.transact(beads.create, new, prefix=self.prefix(rig), ctx=self.context())

    def get(self, bead: str) -> Bead:
        return self.store.read(beads.get, bead)

    def change(self, bead: str, wanted: BeadChange) -> Bead:
        return self.store.transact(beads.change, bead, wanted, ctx=self.context())

    def claim(self, bead: str, assignee: str) -> Bead:
        return self.store.transact(beads.claim, bead, assignee, ctx=self.context())

    def close(self, bead: str) -> Bead:
        return self.store.transact(beads.close, bead, ctx=self.context())

    def matching(self, wanted: BeadFilter, *, limit: int) -> Sequence[Bead]:
        return self.store.read(lambda tx: tx.beads.matching(wanted, limit=limit))

    def ready(self, *, label: str | None = None, assignee: str | None = None, limit: int = 100) -> Sequence[Bead]:
        return self.store.read(lambda tx: tx.beads.ready(label=label, assignee=assignee, limit=limit))

    def children(self, parent: str) -> Sequence[Bead]:
        return self.store.read(lambda tx: tx.beads.children(parent))

    def cook(self, plan: Plan, *, rig: str | None = None) -> Bead:
        return self.store.transact(formulas.cook, plan, prefix=self.prefix(rig), ctx=self.context())
