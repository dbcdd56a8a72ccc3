"""Import of beads from another store, unchanged and in one transaction; importing them again changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lamplighter.domain.beads.model import Bead
from lamplighter.kit.errors import Conflict
from lamplighter.services.beads.changes import TOPIC
from lamplighter.services.context import Context
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class Imported:
    count: int
    """How many beads are new; existing ones are left as they are."""
    notes: tuple[str, ...]
    """Links that were dropped: parents and needs that do not exist, and parents that form a circle."""


class IdTaken(Conflict):
    def __init__(self, bead: str) -> None:
        super().__init__(
            f"Bead {bead} cannot be imported: another bead has this id already.",
            hint="Give it another id in the file; nothing was imported.",
        )


def import_beads(tx: Tx, beads: Sequence[Bead], *, source: str, ctx: Context) -> Imported:
    """Raises IdTaken, and imports nothing, when an existing bead has one of the ids but another creation time."""
    notes: list[str] = []
    known = {bead.id: bead for bead in beads}
    new = [bead for bead in (_fitted(tx, bead, known, notes) for bead in _parents_first(known)) if _is_new(tx, bead)]
    roots: dict[str, str] = {}
    for bead in new:
        above = None if bead.parent is None else roots.get(bead.parent) or tx.beads.root_of(bead.parent)
        roots[bead.id] = above or bead.id
        tx.beads.insert_whole(replace(bead, root=roots[bead.id]))
        tx.beads.add_labels(bead.id, bead.labels)
    for bead in new:
        tx.beads.add_needs(bead.id, bead.needs)
    if new:
        tx.wake(TOPIC)
        tx.events.append(ctx.event("bead.imported", message=f"{len(new)} beads", payload={"source": source}))
    return Imported(len(new), tuple(notes))


def _parents_first(known: Mapping[str, Bead]) -> list[Bead]:
    """Order beads after their parents; in a circle of parents one bead loses its parent."""
    ordered: dict[str, Bead] = {}
    for bead in known.values():
        chain: dict[str, Bead] = {}
        above: Bead | None = bead
        while above is not None and above.id not in ordered and above.id not in chain:
            chain[above.id] = above
            above = None if above.parent is None else known.get(above.parent)
        cut = above is not None and above.id in chain
        for number, entry in enumerate(reversed(chain.values())):
            ordered[entry.id] = replace(entry, parent=None) if cut and number == 0 else entry
    return list(ordered.values())


def _fitted(tx: Tx, bead: Bead, known: Mapping[str, Bead], notes: list[str]) -> Bead:
    """The bead without links to beads that do not exist, which the database would refuse; adds a note for each link."""

    def exists(other: str) -> bool:
        return other in known or tx.beads.root_of(other) is not None

    asked = known[bead.id].parent
    parent = bead.parent if bead.parent is None or exists(bead.parent) else None
    needs = tuple(need for need in bead.needs if need != bead.id and exists(need))
    if parent != asked:
        notes.append(f"{bead.id}: its parent {asked} was left out")
    notes += [f"{bead.id}: its need {need} was left out" for need in bead.needs if need not in needs]
    return replace(bead, parent=parent, needs=needs)


def _is_new(tx: Tx, bead: Bead) -> bool:
    there = tx.beads.get(bead.id)
    if there is not None and there.created_at != bead.created_at:
        raise IdTaken(bead.id)
    return there is None
