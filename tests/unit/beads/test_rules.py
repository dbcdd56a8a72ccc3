"""What follows from a bead's type, labels and status."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.beads.checks import check_word, checked, checked_assignee, checked_change
from lamplighter.domain.beads.model import Bead, BeadChange, BeadStatus, NewBead
from lamplighter.domain.beads.rules import changed, ends_with_children, opens_with_children, workable
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.services.beads.views import view

NOW = datetime(2026, 3, 2, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
BEAD = Bead(
    id="lc-1",
    title="Build",
    type="task",
    status=BeadStatus.OPEN,
    labels=("a", "b"),
    assignee="amber",
    sender=None,
    parent="lc-0",
    root="lc-0",
    needs=("lc-2",),
    ref=None,
    description="text",
    metadata={"k": "v"},
    ephemeral=False,
    run=None,
    created_at=NOW,
    updated_at=NOW,
    closed_at=None,
)


def bead(**fields: Any) -> Bead:
    return replace(BEAD, **({"labels": (), "assignee": None} | fields))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"type": "bug"}, True),
        ({"status": BeadStatus.IN_PROGRESS}, False),
        ({"status": BeadStatus.CLOSED}, False),
        ({"type": "run"}, False),
        ({"type": "message"}, False),
        ({"type": "convoy"}, False),
        ({"type": "epic", "labels": ("pool:coder",)}, False),
        ({"type": "molecule"}, False),
        ({"type": "molecule", "labels": ("pool:coder",)}, True),
        ({"type": "wisp", "assignee": "amber"}, True),
        ({"type": "wisp", "labels": ("pooled",)}, False),
    ],
)
def test_work_is_what_somebody_could_take(fields: dict[str, Any], expected: bool) -> None:  # noqa: FBT001  a case
    assert workable(bead(**fields)) is expected


@pytest.mark.parametrize(
    ("fields", "ends", "opens"),
    [
        ({"type": "molecule"}, True, True),
        ({"type": "wisp", "labels": ("owned",)}, True, True),
        ({"type": "convoy"}, True, True),
        ({"type": "convoy", "labels": ("owned",)}, False, True),
        ({"type": "epic"}, False, True),
        ({"type": "task"}, False, False),
    ],
)
def test_what_ends_and_opens_with_its_children(fields: dict[str, Any], ends: bool, opens: bool) -> None:  # noqa: FBT001
    closed = bead(**fields, status=BeadStatus.CLOSED)
    assert (ends_with_children(bead(**fields)), ends_with_children(closed)) == (ends, False)
    assert (opens_with_children(closed), opens_with_children(bead(**fields))) == (opens, False)


@pytest.mark.parametrize(
    "wanted",
    [
        BeadChange(),
        BeadChange(title="Build", description="text", assignee="amber", parent="lc-0", status=BeadStatus.OPEN),
        BeadChange(add_labels=("a",), remove_labels=("z",), add_needs=("lc-2",), remove_needs=("lc-9",)),
        BeadChange(metadata={"k": "v", "never": None}),
    ],
)
def test_a_change_that_changes_nothing_gives_the_same_bead(wanted: BeadChange) -> None:
    assert changed(BEAD, wanted, LATER) is BEAD


def test_a_change_gives_a_bead_changed_now() -> None:
    wanted = BeadChange(
        title="T", assignee="", parent="", add_labels=("c",), remove_labels=("a",), remove_needs=("lc-2",),
        metadata={"k": None, "n": "1"},
    )  # fmt: skip
    assert changed(BEAD, wanted, LATER) == replace(
        BEAD, title="T", assignee=None, parent=None, labels=("b", "c"), needs=(), metadata={"n": "1"}, updated_at=LATER
    )


def test_opening_again_forgets_when_it_was_closed() -> None:
    closed = bead(status=BeadStatus.CLOSED, closed_at=NOW)
    assert changed(closed, BeadChange(title="T"), LATER).closed_at == NOW
    assert changed(closed, BeadChange(status=BeadStatus.OPEN), LATER).closed_at is None


@pytest.mark.parametrize("word", ["", "two words", "tab\t", "x" * 201, "nul\0", "half \ud83d", "bell\x07"])
def test_labels_and_types_are_single_words(word: str) -> None:
    with pytest.raises(UsageError, match="is not a label or type"):
        check_word(word)


@pytest.mark.parametrize(
    "new",
    [
        NewBead("t", description="x" * ((1 << 20) + 1)),
        NewBead("t", description="nul\0"),
        NewBead("t", assignee="nul\0"),
        NewBead("t", metadata={"": "x"}),
        NewBead("t", metadata={"k": "nul\0"}),
    ],
)
def test_texts_that_no_store_can_keep_are_refused(new: NewBead) -> None:
    with pytest.raises(UsageError) as refused:
        checked(new)
    assert refused.value.hint


def test_a_bead_may_be_as_long_as_the_rules_say_and_no_longer() -> None:
    longest = NewBead("t" * 500, type="x" * 200, labels=("y" * 200,), description="z" * (1 << 20))
    assert checked(longest) is longest
    for too_long in (NewBead("t" * 501), NewBead("t", labels=("y" * 201,)), NewBead("t", ref="z" * ((1 << 20) + 1))):
        with pytest.raises(UsageError):
            checked(too_long)


def test_a_bead_is_closed_by_its_own_command_only() -> None:
    with pytest.raises(UsageError, match="lamp bead close"):
        checked_change(BeadChange(status=BeadStatus.CLOSED))
    opened = BeadChange(status=BeadStatus.OPEN)
    assert checked_change(opened) is opened


def test_a_change_is_held_to_the_same_rules() -> None:
    wrong = [
        BeadChange(title=""), BeadChange(description="\0"), BeadChange(metadata={" ": "x"}),
        BeadChange(type="two words"), BeadChange(add_labels=("good", "two words")),
    ]  # fmt: skip
    for wanted in wrong:
        with pytest.raises(UsageError):
            checked_change(wanted)
    good = BeadChange(title="t", type="bug", add_labels=("a",), metadata={"k": None})
    assert checked_change(good) is good


def test_nobody_cannot_claim() -> None:
    assert checked_assignee("amber") == "amber"
    with pytest.raises(UsageError, match="needs an assignee"):
        checked_assignee("  ")


def test_a_bead_as_json_names_times_in_utc() -> None:
    shown = to_json(view(bead(closed_at=LATER, status=BeadStatus.CLOSED, sender="mayor")))
    assert shown["created_at"] == "2026-03-02T00:00:00.000000Z"
    assert shown["closed_at"] == "2026-03-02T01:00:00.000000Z"
    assert (shown["from"], shown["status"], shown["needs"]) == ("mayor", "closed", ["lc-2"])
