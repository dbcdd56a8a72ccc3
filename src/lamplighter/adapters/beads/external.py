"""Adds what the port requires and an outside bead store may lack: checks, needs, cascades, complete cooking.

An outside store cannot do these in one transaction. So a repeated call finishes what an interrupted one began:
closing again closes the parents, and cooking again for the same run adds the missing steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from lamplighter.domain.beads.checks import checked, checked_assignee, checked_change
from lamplighter.domain.beads.formulas import Plan
from lamplighter.domain.beads.model import (
    AlreadyClaimed,
    Bead,
    BeadChange,
    BeadFilter,
    BeadNotFound,
    BeadStatus,
    BelowItself,
    NeedsCycle,
    NewBead,
    NotClaimable,
)
from lamplighter.domain.beads.rules import changed, ends_with_children, opens_with_children, workable
from lamplighter.kit.errors import LampError, NotFound

RUN_LABEL = "run:"


class Backend(Protocol):
    """The operations an outside store must have; each raises BeadNotFound for an unknown id."""

    @property
    def name(self) -> str: ...

    def create(self, new: NewBead, rig: str | None) -> Bead: ...

    def get(self, bead: str) -> Bead: ...

    def update(self, bead: str, wanted: BeadChange) -> None: ...

    def claim(self, bead: str, assignee: str) -> None:
        """Atomic; raises a LampError when the store refuses the claim."""
        ...

    def close(self, bead: str) -> None: ...

    def all(self, wanted: BeadFilter) -> Sequence[Bead]:
        """At least the beads that pass the filter, closed ones too; the caller filters again."""
        ...

    def ready(self, label: str | None, assignee: str | None) -> Sequence[Bead]:
        """At least the open beads whose needs are closed; the caller filters again."""
        ...

    def cook(self, plan: Plan, rig: str | None) -> str | None:
        """The id of the root it cooked; None when the store cannot cook."""
        ...


class ChangeIgnored(LampError):
    def __init__(self, store: str, bead: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{store} said it updated bead {bead}, but left {', '.join(names)} as before.",
            hint="It must understand these keys of `update`; docs/reference/bead-stores.md lists them.",
        )


class ExternalBeads:
    """Makes a Backend a BeadStore."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def create(self, new: NewBead, *, rig: str | None = None) -> Bead:
        checked(new)
        parent = None if new.parent is None else self.get(new.parent)
        for need in new.needs:
            self.get(need)
        made = self._backend.create(new, rig)
        if parent is not None:
            self._reopen_from(parent)
        return made

    def get(self, bead: str) -> Bead:
        if not bead or bead.startswith("-") or any(sign.isspace() or sign == "\0" for sign in bead):
            raise BeadNotFound(bead)  # cannot be an id, and a program might take it for a flag
        return self._backend.get(bead)

    def change(self, bead: str, wanted: BeadChange) -> Bead:
        checked_change(wanted)
        before = self.get(bead)
        planned = changed(before, wanted, before.updated_at)
        if planned is before:
            return before
        self._check_needs(before, planned)
        parent = self._checked_parent(before, planned)
        self._backend.update(bead, wanted)
        after = self.get(bead)
        ignored = [name for name in _CHANGING if _ignored(name, before, planned, after)]
        if ignored:
            raise ChangeIgnored(self._backend.name, bead, ignored)
        if parent is not None and after.status is not BeadStatus.CLOSED:
            self._reopen_from(parent)
        return after

    def claim(self, bead: str, assignee: str) -> Bead:
        checked_assignee(assignee)
        before = self.get(bead)
        _check_free(before, assignee)
        if before.status is BeadStatus.IN_PROGRESS and before.assignee == assignee:
            return before
        unmet = self._unmet([before]).get(bead)
        if unmet:
            raise NotClaimable(bead, f"it waits for {', '.join(unmet)}")
        try:
            self._backend.claim(bead, assignee)
        except NotFound:
            raise
        except LampError:
            _check_free(self.get(bead), assignee)  # if another assignee was faster or closed it, raise that instead
            raise
        after = self.get(bead)
        _check_free(after, assignee)
        if after.status is not BeadStatus.IN_PROGRESS or after.assignee != assignee:
            raise ChangeIgnored(self._backend.name, bead, ["status", "assignee"])
        return after

    def close(self, bead: str) -> Bead:
        before = self.get(bead)
        closed = before
        if before.status is not BeadStatus.CLOSED:
            self._backend.close(bead)
            closed = self.get(bead)
            if closed.status is not BeadStatus.CLOSED:
                raise ChangeIgnored(self._backend.name, bead, ["status"])
        self._close_finished_parents(closed)
        return closed

    def matching(self, wanted: BeadFilter, *, limit: int) -> Sequence[Bead]:
        found = [bead for bead in self._backend.all(wanted) if _passes(bead, wanted)]
        return sorted(found, key=lambda bead: bead.created_at, reverse=True)[:limit]

    def ready(self, *, label: str | None = None, assignee: str | None = None, limit: int = 100) -> Sequence[Bead]:
        wanted = BeadFilter(label=label, assignee=assignee)
        open_ones = [bead for bead in self._backend.ready(label, assignee) if workable(bead) and _passes(bead, wanted)]
        unmet = self._unmet(open_ones)
        found = [bead for bead in open_ones if not unmet.get(bead.id)]
        return sorted(found, key=lambda bead: bead.created_at)[:limit]

    def children(self, parent: str) -> Sequence[Bead]:
        wanted = BeadFilter(parent=parent)
        found = [bead for bead in self._backend.all(wanted) if _passes(bead, wanted)]
        return sorted(found, key=lambda bead: bead.created_at)

    def cook(self, plan: Plan, *, rig: str | None = None) -> Bead:
        ordered = plan.in_order()
        for new in (plan.root, *ordered):
            checked(new)
        root = self._cooked_before(plan) or self._root(plan, rig)
        made = {child.ref: child.id for child in self.children(root.id)}
        refs = {step.ref for step in plan.steps}
        if refs.issuperset(made):
            for step in ordered:
                if step.ref not in made:
                    needs = tuple(made[need] for need in step.needs)
                    made[step.ref] = self._backend.create(replace(step, parent=root.id, needs=needs), rig).id
            self._reopen_from(self.get(root.id))
        return self.get(root.id)

    def _cooked_before(self, plan: Plan) -> Bead | None:
        """The root that an earlier, perhaps interrupted call made for the same run."""
        label = next((label for label in plan.root.labels if label.startswith(RUN_LABEL)), None)
        if label is None:
            return None
        found = self.matching(BeadFilter(label=label, type=plan.root.type), limit=1)
        return found[0] if found else None

    def _root(self, plan: Plan, rig: str | None) -> Bead:
        if plan.root.parent is not None:
            self.get(plan.root.parent)
        cooked = self._backend.cook(plan, rig)
        if cooked is None:
            return self.create(plan.root, rig=rig)
        wanted = BeadChange(assignee=plan.root.assignee, add_labels=plan.root.labels, metadata=dict(plan.root.metadata))
        return self.change(cooked, wanted)

    def _check_needs(self, before: Bead, planned: Bead) -> None:
        added = set(planned.needs) - set(before.needs)
        if not added:
            return
        for need in added:
            self.get(need)
        needs = {bead.id: bead.needs for bead in self._backend.all(BeadFilter())}
        for need in sorted(added):
            if before.id in _reached(need, needs):
                raise NeedsCycle(before.id, need)

    def _checked_parent(self, before: Bead, planned: Bead) -> Bead | None:
        """The parent the change may reopen: a new one, or that of a bead whose status changes. Raises BelowItself."""
        if planned.parent is None or (planned.parent == before.parent and planned.status is before.status):
            return None
        parent = self.get(planned.parent)
        if planned.parent != before.parent and before.id in (parent.id, *self._ancestors(parent)):
            raise BelowItself(before.id, parent.id)
        return parent

    def _ancestors(self, bead: Bead) -> Iterator[str]:
        seen = {bead.id}
        while bead.parent is not None and bead.parent not in seen:
            seen.add(bead.parent)
            yield bead.parent
            bead = self.get(bead.parent)

    def _unmet(self, beads: Sequence[Bead]) -> dict[str, list[str]]:
        """The open needs of each bead; a need that no longer exists counts as met."""
        if not any(bead.needs for bead in beads):
            return {}
        still_open = {bead.id for bead in self._backend.all(BeadFilter()) if bead.status is not BeadStatus.CLOSED}
        return {bead.id: [need for need in bead.needs if need in still_open] for bead in beads}

    def _close_finished_parents(self, bead: Bead) -> None:
        while bead.parent is not None:
            parent = self.get(bead.parent)
            if not ends_with_children(parent) or any(
                child.status is not BeadStatus.CLOSED for child in self.children(parent.id)
            ):
                return
            self._backend.close(parent.id)
            bead = parent

    def _reopen_from(self, bead: Bead) -> None:
        """Reopen `bead` if it is a closed molecule or container with an open child, then its ancestors likewise."""
        while opens_with_children(bead) and any(
            child.status is not BeadStatus.CLOSED for child in self.children(bead.id)
        ):
            self._backend.update(bead.id, BeadChange(status=BeadStatus.OPEN))
            if bead.parent is None:
                return
            bead = self.get(bead.parent)


_CHANGING = ("title", "type", "status", "description", "assignee", "parent", "labels", "needs", "metadata")


def _ignored(name: str, before: Bead, planned: Bead, after: Bead) -> bool:
    old, wanted, now = (getattr(bead, name) for bead in (before, planned, after))
    return bool(wanted != old and now == old)


def _check_free(bead: Bead, assignee: str) -> None:
    if bead.status is BeadStatus.CLOSED:
        raise NotClaimable(bead.id, "it is closed")
    if bead.assignee is not None and bead.assignee != assignee:
        raise AlreadyClaimed(bead.id, bead.assignee)


def _passes(bead: Bead, wanted: BeadFilter) -> bool:
    pairs = (
        (wanted.status, bead.status),
        (wanted.type, bead.type),
        (wanted.assignee, bead.assignee),
        (wanted.parent, bead.parent),
    )
    return all(asked is None or asked == have for asked, have in pairs) and (
        wanted.label is None or wanted.label in bead.labels
    )


def _reached(start: str, needs: dict[str, tuple[str, ...]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        bead = waiting.pop()
        if bead not in reached:
            reached.add(bead)
            waiting += needs.get(bead, ())
    return reached
