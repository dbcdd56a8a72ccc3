"""The contract of bead stores, Lamplighter's own and outside ones.

A test class inherits BeadContract and provides the fixture `open_beads`: each call opens another access to the same
store, for the calling thread.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Barrier
from typing import TypeAlias

import pytest

from lamplighter.domain.beads.formulas import FormulaInvalid, Plan, decode, plan
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
from lamplighter.kit.errors import UsageError
from lamplighter.ports.beads import BeadStore

OpenBeads: TypeAlias = Callable[[], AbstractContextManager[BeadStore]]

CLAIMANTS = 8
WITHIN_SECONDS = 120


class BeadContract:
    @pytest.fixture
    def open_beads(self) -> OpenBeads:
        raise NotImplementedError("the test class gives this fixture")

    @pytest.fixture
    def beads(self, open_beads: OpenBeads) -> Iterator[BeadStore]:
        with open_beads() as opened:
            yield opened

    def test_a_new_bead_is_open_and_keeps_what_it_was_given(self, beads: BeadStore) -> None:
        parent = beads.create(NewBead("Release", type="epic"))
        need = beads.create(NewBead("Design"))
        new = NewBead(
            title="-- Build: it is 50 % “done”",
            type="bug",
            labels=("pool:coder", "urgent"),
            assignee="rig/amber",
            sender="mayor",
            parent=parent.id,
            needs=(need.id,),
            ref="build",
            description="First line\nsecond line, with ünïcode and a , comma",
            metadata={"branch": "main", "tries": "2"},
        )
        made = beads.create(new)
        assert made.status is BeadStatus.OPEN
        assert made.closed_at is None
        for kept in (made, beads.get(made.id)):
            assert _given(kept) == new
        assert made.id not in (parent.id, need.id)

    def test_a_plain_bead_is_a_task_with_nothing_else(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Sweep"))
        assert _given(beads.get(made.id)) == NewBead("Sweep")

    @pytest.mark.parametrize(
        "new",
        [
            NewBead(""),
            NewBead("  "),
            NewBead("x" * 501),
            NewBead("fine", labels=("two words",)),
            NewBead("fine", type=""),
            NewBead("nul\0"),
            NewBead("fine", description="half a character \ud83d"),
        ],
        ids=["no title", "blank title", "long title", "spaced label", "no type", "NUL", "surrogate"],
    )
    def test_a_bead_that_cannot_be_kept_is_refused(self, beads: BeadStore, new: NewBead) -> None:
        with pytest.raises(UsageError):
            beads.create(new)
        assert beads.matching(BeadFilter(), limit=10) == []

    def test_an_unknown_parent_or_need_creates_nothing(self, beads: BeadStore) -> None:
        with pytest.raises(BeadNotFound):
            beads.create(NewBead("Orphan", parent="zz-404"))
        with pytest.raises(BeadNotFound):
            beads.create(NewBead("Waiting", needs=("zz-404",)))
        assert beads.matching(BeadFilter(), limit=10) == []

    @pytest.mark.parametrize("bead", ["zz-404", "--help", "", "a b"])
    def test_an_unknown_id_is_not_found(self, beads: BeadStore, bead: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: beads.get(bead),
            lambda: beads.change(bead, BeadChange(title="x")),
            lambda: beads.claim(bead, "amber"),
            lambda: beads.close(bead),
        ]
        for call in calls:
            with pytest.raises(BeadNotFound):
                call()

    def test_a_change_sets_what_it_names_and_leaves_the_rest(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Old", labels=("a", "b"), assignee="amber", metadata={"keep": "1", "drop": "2"}))
        wanted = BeadChange(
            title="New",
            type="bug",
            description="said more",
            status=BeadStatus.IN_PROGRESS,
            add_labels=("c", "a"),
            remove_labels=("b", "never-there"),
            metadata={"drop": None, "more": "x=y"},
        )
        changed = beads.change(made.id, wanted)
        assert changed == beads.get(made.id)
        assert (changed.title, changed.type, changed.description) == ("New", "bug", "said more")
        assert changed.status is BeadStatus.IN_PROGRESS
        assert changed.labels == ("a", "c")
        assert changed.assignee == "amber"
        assert changed.metadata == {"keep": "1", "more": "x=y"}

    def test_empty_text_clears_assignee_parent_and_description(self, beads: BeadStore) -> None:
        parent = beads.create(NewBead("Release", type="epic"))
        made = beads.create(NewBead("Build", assignee="amber", parent=parent.id, description="text"))
        changed = beads.change(made.id, BeadChange(assignee="", parent="", description=""))
        assert (changed.assignee, changed.parent, changed.description) == (None, None, "")
        assert beads.children(parent.id) == []

    def test_a_change_that_cannot_be_kept_changes_nothing(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Build"))
        for wanted in (
            BeadChange(title=" "),
            BeadChange(title="New", add_labels=("two words",)),
            BeadChange(type=""),
            BeadChange(status=BeadStatus.CLOSED),
        ):
            with pytest.raises(UsageError):
                beads.change(made.id, wanted)
        assert beads.get(made.id) == made

    def test_a_bead_is_ready_exactly_when_its_last_need_closes(self, beads: BeadStore) -> None:
        first, second = beads.create(NewBead("First")), beads.create(NewBead("Second"))
        last = beads.create(NewBead("Last", needs=(first.id, second.id)))
        assert _ids(beads.ready()) == [first.id, second.id]
        beads.close(first.id)
        assert _ids(beads.ready()) == [second.id]
        beads.close(second.id)
        assert _ids(beads.ready()) == [last.id]

    def test_needs_can_be_added_and_taken_away(self, beads: BeadStore) -> None:
        need, made = beads.create(NewBead("Need")), beads.create(NewBead("Build"))
        assert beads.change(made.id, BeadChange(add_needs=(need.id,))).needs == (need.id,)
        assert _ids(beads.ready()) == [need.id]
        assert beads.change(made.id, BeadChange(remove_needs=(need.id,))).needs == ()
        assert _ids(beads.ready()) == [need.id, made.id]

    def test_a_need_that_closes_a_circle_is_refused(self, beads: BeadStore) -> None:
        first = beads.create(NewBead("First"))
        second = beads.create(NewBead("Second", needs=(first.id,)))
        third = beads.create(NewBead("Third", needs=(second.id,)))
        for need in (first.id, third.id):
            with pytest.raises(NeedsCycle):
                beads.change(first.id, BeadChange(add_needs=(need,)))
        with pytest.raises(BeadNotFound):
            beads.change(first.id, BeadChange(add_needs=("zz-404",)))
        assert beads.get(first.id).needs == ()

    def test_ready_hides_what_is_no_work(self, beads: BeadStore) -> None:
        for type_ in ("epic", "convoy", "message", "run", "molecule"):
            beads.create(NewBead(type_, type=type_))
        claimed = beads.create(NewBead("Claimed"))
        beads.claim(claimed.id, "amber")
        routed = beads.create(NewBead("Routed", type="molecule", labels=("pool:coder",)))
        assert _ids(beads.ready()) == [routed.id]

    def test_ready_asks_for_label_assignee_and_limit(self, beads: BeadStore) -> None:
        for number in range(3):
            beads.create(NewBead(f"Routed {number}", labels=("pool:coder",)))
        mine = beads.create(NewBead("Mine", assignee="amber"))
        assert [bead.title for bead in beads.ready(label="pool:coder", limit=2)] == ["Routed 0", "Routed 1"]
        assert _ids(beads.ready(assignee="amber")) == [mine.id]
        assert beads.ready(label="pool") == []

    def test_lists_are_newest_first_and_every_condition_holds(self, beads: BeadStore) -> None:
        parent = beads.create(NewBead("Release", type="epic"))
        old = beads.create(NewBead("Old", labels=("x",), parent=parent.id))
        new = beads.create(NewBead("New", labels=("x", "y"), assignee="amber", type="bug"))
        beads.close(old.id)
        assert _ids(beads.matching(BeadFilter(), limit=10)) == [new.id, old.id, parent.id]
        assert _ids(beads.matching(BeadFilter(), limit=2)) == [new.id, old.id]
        assert _ids(beads.matching(BeadFilter(label="x"), limit=10)) == [new.id, old.id]
        assert _ids(beads.matching(BeadFilter(status=BeadStatus.CLOSED), limit=10)) == [old.id]
        assert _ids(beads.matching(BeadFilter(type="bug", assignee="amber", label="y"), limit=10)) == [new.id]
        assert _ids(beads.matching(BeadFilter(parent=parent.id), limit=10)) == [old.id]
        assert beads.matching(BeadFilter(label="x", type="epic"), limit=10) == []
        assert beads.matching(BeadFilter(label="never"), limit=10) == []

    def test_children_come_oldest_first_and_closed_ones_too(self, beads: BeadStore) -> None:
        parent = beads.create(NewBead("Release", type="epic"))
        made = [beads.create(NewBead(f"Child {number}", parent=parent.id)) for number in range(3)]
        beads.close(made[1].id)
        assert _ids(beads.children(parent.id)) == _ids(made)
        assert beads.children("zz-404") == []

    def test_a_claim_gives_the_bead_to_its_claimant(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Build"))
        claimed = beads.claim(made.id, "amber")
        assert (claimed.status, claimed.assignee) == (BeadStatus.IN_PROGRESS, "amber")
        assert beads.get(made.id) == claimed
        assert beads.claim(made.id, "amber") == claimed, "its holder may ask again"
        with pytest.raises(AlreadyClaimed) as refused:
            beads.claim(made.id, "beryl")
        assert refused.value.holder == "amber"
        assert beads.get(made.id) == claimed

    def test_what_waits_is_closed_or_is_another_s_cannot_be_claimed(self, beads: BeadStore) -> None:
        need = beads.create(NewBead("Need"))
        waiting = beads.create(NewBead("Waiting", needs=(need.id,)))
        with pytest.raises(NotClaimable, match=need.id):
            beads.claim(waiting.id, "amber")
        beads.close(need.id)
        with pytest.raises(NotClaimable, match="closed"):
            beads.claim(need.id, "amber")
        given = beads.create(NewBead("Given", assignee="beryl"))
        with pytest.raises(AlreadyClaimed):
            beads.claim(given.id, "amber")
        with pytest.raises(UsageError):
            beads.claim(waiting.id, " ")
        assert beads.claim(given.id, "beryl").status is BeadStatus.IN_PROGRESS
        assert beads.claim(waiting.id, "amber").assignee == "amber"

    def test_of_many_claimants_one_wins(self, open_beads: OpenBeads, beads: BeadStore) -> None:
        made = beads.create(NewBead("Wanted by all"))
        together = Barrier(CLAIMANTS)

        def claim(name: str) -> str | None:
            with open_beads() as own:
                together.wait(WITHIN_SECONDS)
                try:
                    return own.claim(made.id, name).assignee
                except AlreadyClaimed:
                    return None

        with ThreadPoolExecutor(CLAIMANTS) as threads:
            names = [f"agent-{number}" for number in range(CLAIMANTS)]
            won = [name for name in threads.map(claim, names, timeout=WITHIN_SECONDS) if name is not None]
        assert [beads.get(made.id).assignee] == won

    def test_closing_may_be_repeated(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Build"))
        closed = beads.close(made.id)
        assert closed.status is BeadStatus.CLOSED
        assert closed.closed_at is not None
        assert beads.close(made.id) == closed == beads.get(made.id)
        assert beads.ready() == []

    def test_a_closed_bead_can_be_opened_again(self, beads: BeadStore) -> None:
        made = beads.create(NewBead("Build"))
        beads.close(made.id)
        opened = beads.change(made.id, BeadChange(status=BeadStatus.OPEN))
        assert (opened.status, opened.closed_at) == (BeadStatus.OPEN, None)
        assert _ids(beads.ready()) == [made.id]

    @pytest.mark.parametrize(
        ("type_", "labels"), [("molecule", ()), ("wisp", ()), ("convoy", ()), ("molecule", ("owned",))]
    )
    def test_closing_the_last_child_closes_what_ends_with_it(
        self, beads: BeadStore, type_: str, labels: tuple[str, ...]
    ) -> None:
        convoy = beads.create(NewBead("All of it", type="convoy"))
        parent = beads.create(NewBead("Whole", type=type_, labels=labels, parent=convoy.id))
        steps = [beads.create(NewBead(f"Step {number}", parent=parent.id)) for number in range(2)]
        beads.close(steps[0].id)
        assert beads.get(parent.id).status is BeadStatus.OPEN
        beads.close(steps[1].id)
        assert beads.get(parent.id).status is BeadStatus.CLOSED
        assert beads.get(convoy.id).status is BeadStatus.CLOSED

    @pytest.mark.parametrize(("type_", "labels"), [("convoy", ("owned",)), ("epic", ()), ("task", ())])
    def test_what_somebody_looks_after_stays_open(self, beads: BeadStore, type_: str, labels: tuple[str, ...]) -> None:
        parent = beads.create(NewBead("Whole", type=type_, labels=labels))
        child = beads.create(NewBead("Only child", parent=parent.id))
        beads.close(child.id)
        assert beads.get(parent.id).status is BeadStatus.OPEN

    def test_new_work_below_a_closed_convoy_opens_it_again(self, beads: BeadStore) -> None:
        convoy = beads.create(NewBead("Whole", type="convoy"))
        first = beads.create(NewBead("First", parent=convoy.id))
        beads.close(first.id)
        beads.create(NewBead("Second", parent=convoy.id))
        assert beads.get(convoy.id).status is BeadStatus.OPEN

    def test_a_bead_can_be_moved_but_not_below_itself(self, beads: BeadStore) -> None:
        top = beads.create(NewBead("Top", type="epic"))
        middle = beads.create(NewBead("Middle", type="epic", parent=top.id))
        low = beads.create(NewBead("Low", parent=middle.id))
        for parent in (top.id, low.id):
            with pytest.raises(BelowItself):
                beads.change(top.id, BeadChange(parent=parent))
        with pytest.raises(BeadNotFound):
            beads.change(low.id, BeadChange(parent="zz-404"))
        assert beads.change(low.id, BeadChange(parent=top.id)).parent == top.id
        assert _ids(beads.children(top.id)) == [middle.id, low.id]
        assert beads.children(middle.id) == []

    def test_cooking_makes_the_root_and_every_step_with_its_needs(self, beads: BeadStore) -> None:
        root = beads.cook(_tea())
        steps = {step.ref: step for step in beads.children(root.id)}
        assert (root.type, root.ref, root.title, root.status) == ("molecule", "tea", "Tea", BeadStatus.OPEN)
        assert root.labels == ("pool:cook", "run:run_1")
        assert steps.keys() == {"boil", "cup", "pour"}
        assert steps["pour"].needs == tuple(sorted((steps["boil"].id, steps["cup"].id)))
        assert steps["boil"].description == "Boil 2 litres"
        assert {step.ref for step in beads.ready() if step.parent == root.id} == {"boil", "cup"}

    def test_a_wisp_is_done_with_its_last_step(self, beads: BeadStore) -> None:
        parent = beads.create(NewBead("Afternoon", type="epic"))
        root = beads.cook(_tea(parent=parent.id))
        assert root.parent == parent.id
        for ref in ("boil", "cup", "pour"):
            assert beads.get(root.id).status is BeadStatus.OPEN
            step = next(step for step in beads.ready() if step.ref == ref)
            beads.claim(step.id, "amber")
            beads.close(step.id)
        assert beads.get(root.id).status is BeadStatus.CLOSED
        assert beads.get(parent.id).status is BeadStatus.OPEN

    def test_a_plan_that_cannot_be_cooked_creates_nothing(self, beads: BeadStore) -> None:
        circle = (NewBead("A", ref="a", needs=("b",)), NewBead("B", ref="b", needs=("a",)))
        for steps in (circle, (NewBead("A", ref="a", needs=("never",)),)):
            with pytest.raises(FormulaInvalid):
                beads.cook(Plan(NewBead("Bad", type="molecule"), steps))
        with pytest.raises(UsageError):
            beads.cook(Plan(NewBead("Bad", type="molecule"), (NewBead("fine", ref="a"), NewBead(" ", ref="b"))))
        with pytest.raises(BeadNotFound):
            beads.cook(_tea(parent="zz-404"))
        assert beads.matching(BeadFilter(), limit=10) == []


def _tea(parent: str | None = None) -> Plan:
    formula = decode(
        {
            "formula": "tea",
            "vars": {"litres": {"default": "1"}},
            "steps": [
                {"id": "pour", "title": "Pour", "needs": ["boil", "cup"]},
                {"id": "boil", "title": "Boil", "description": "Boil {{litres}} litres"},
                {"id": "cup", "title": "Find a cup"},
            ],
        },
        "tea.formula.toml",
    )
    made = plan(formula, title="Tea", values={"litres": "2"})
    return replace(made, root=replace(made.root, labels=("pool:cook", "run:run_1"), parent=parent))


def _given(bead: Bead) -> NewBead:
    return NewBead(
        title=bead.title,
        type=bead.type,
        labels=bead.labels,
        assignee=bead.assignee,
        sender=bead.sender,
        parent=bead.parent,
        needs=bead.needs,
        ref=bead.ref,
        description=bead.description,
        metadata=bead.metadata,
    )


def _ids(beads: Sequence[Bead]) -> list[str]:
    return [bead.id for bead in beads]
