"""Cursors: what is kept of a value by its type, and what counts as the same."""

import pytest

from lamplighter.domain.automations.cursors import CursorKind, same, written


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (CursorKind.TEXT, " abc ", "abc"),
        (CursorKind.TEXT, "0042", "0042"),
        (CursorKind.INTEGER, "0042", "42"),
        (CursorKind.INTEGER, "-7", "-7"),
        (CursorKind.TIME, "2026-03-01T10:00:00+01:00", "2026-03-01T09:00:00.000000Z"),
        (CursorKind.TIME, "2026-03-01T09:00:00Z", "2026-03-01T09:00:00.000000Z"),
    ],
)
def test_a_value_is_kept_in_one_spelling(kind: CursorKind, value: str, kept: str) -> None:
    assert written(value, kind) == kept
    assert same(value, kept, kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (CursorKind.TEXT, "  "), (CursorKind.TEXT, "x" * 1001), (CursorKind.TEXT, "a\0b"), (CursorKind.TEXT, "\udcff"),
        (CursorKind.INTEGER, "4.5"), (CursorKind.INTEGER, "many"), (CursorKind.INTEGER, "٤٢"),
        (CursorKind.INTEGER, "-"),
        (CursorKind.TIME, "yesterday"), (CursorKind.TIME, "2026-03-01T09:00:00"),
    ],
)  # fmt: skip
def test_what_is_not_of_its_type_is_refused(kind: CursorKind, value: str) -> None:
    with pytest.raises(ValueError, match=r"is|has|holds"):
        written(value, kind)
    assert not same(value, "42", kind)
