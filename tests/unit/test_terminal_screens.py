"""Screens of a terminal: rows that stand alone, secrets that are masked wherever they are, rows that changed."""

import pytest

from lamplighter.adapters.sessions.tmux.terminal import independent
from lamplighter.ports.sessions import Screen
from lamplighter.services.agents.terminals import changed_rows, masked


def screen(*rows: str, text: str | None = None, columns: int = 10) -> Screen:
    return Screen("ses_1", columns, rows, "\n".join(rows) if text is None else text, (0, 0), True, False, 0)


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (["a", "b"], ("a", "b")),
        (["\x1b[31mred", "still", "\x1b[0mplain"], ("\x1b[31mred", "\x1b[31mstill", "\x1b[31m\x1b[0mplain")),
        (["\x1b[1m\x1b[44mx", "\x1b[0;32my", "z"], ("\x1b[1m\x1b[44mx", "\x1b[1m\x1b[44m\x1b[0;32my", "\x1b[0;32mz")),
        (["\x1b[31ma\x1b[32mb\x1b[31mc", "d"], ("\x1b[31ma\x1b[32mb\x1b[31mc", "\x1b[32m\x1b[31md")),
        (["\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"], ("link",)),
        (["\x1b]52;c;eA==\x07a\x1b[2Jb\x08\x9bc\x7f"], ("a[2Jbc",)),
        (["\x0elqk\x0f"], ("\x0elqk\x0f",)),
    ],
)
def test_each_row_begins_with_the_colours_that_the_row_before_left(lines: list[str], rows: tuple[str, ...]) -> None:
    assert independent(lines) == rows


def mask(text: str) -> str:
    return text.replace("hunter22", "•••")


def test_a_screen_without_a_secret_is_as_it_was() -> None:
    before = screen("\x1b[31mhunter", "gathers", text="hunter\ngathers")
    assert masked(before, mask) is before


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (("hunter22",), "hunter22"),
        (("hun\x1b[1mter22",), "hunter22"),
        (("in: hunter", "22 is it"), "in: hunter22 is it"),
    ],
)
def test_a_secret_is_masked_through_colours_and_over_the_edge(rows: tuple[str, ...], text: str) -> None:
    shown = masked(screen(*rows, text=text), mask)
    assert "•••" in "".join(shown.rows)
    assert "22" not in "".join(shown.rows)
    assert len(shown.rows) == len(rows)


def test_only_the_rows_that_differ_are_told_and_all_of_another_size() -> None:
    before = screen("a", "b", "c")
    assert changed_rows(before, screen("a", "x", "c")) == {1: "x"}
    assert changed_rows(None, before) == {0: "a", 1: "b", 2: "c"}
    assert changed_rows(before, screen("a", "b", "c", columns=20)) == {0: "a", 1: "b", 2: "c"}
