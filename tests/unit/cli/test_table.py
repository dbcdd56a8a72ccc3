"""Tables fit the terminal, whatever is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.cli.table import Cell, Column, cut, paragraphs, render, width_of

TEXTS = st.text(alphabet=st.sampled_from("abc xyz-…é\u0301晩街🏮❤\ufe0f\u200d👩🔧\n\t"), max_size=60)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0), ("lamp", 4), ("晩に", 4), ("e\u0301", 1), ("é", 1), ("🏮", 2), ("❤\ufe0f", 2), ("\u200d", 0),
        ("한글", 4),
    ],
)  # fmt: skip
def test_a_text_is_as_wide_as_the_terminal_shows_it(text: str, width: int) -> None:
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("lantern", 7, "lantern"), ("lantern", 6, "lante…"), ("lantern", 1, "…"), ("lantern", 0, ""),
        ("晩に街の", 8, "晩に街の"), ("晩に街の", 7, "晩に街…"), ("晩に街の", 6, "晩に…"),
        ("re\u0301sume\u0301", 4, "re\u0301s…"),
    ],
)  # fmt: skip
def test_what_does_not_fit_ends_in_an_ellipsis(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


def test_of_a_path_the_end_is_kept() -> None:
    assert cut("/srv/city/web", 9, from_start=True) == "…city/web"


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=8), st.integers(1, 60))
def test_no_line_is_wider_than_the_terminal_and_each_row_is_one_line(rows: list[tuple[str, ...]], width: int) -> None:
    columns = [Column("ID", fixed=True), Column("NAME"), Column("PATH", from_start=True, spare=1)]
    lines = render(columns, [[Cell(text) for text in row] for row in rows], width)
    assert len(lines) == len(rows) + 1
    bare = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
    assert all(width_of(line) <= max(width, 5) for line in bare)


def test_a_long_name_pushes_no_other_column_away() -> None:
    columns = [Column("ID", fixed=True), Column("NAME"), Column("STATE", fixed=True), Column("WHEN", fixed=True)]
    rows = [[Cell("k3f9x2"), Cell("n" * 300), Cell("succeeded"), Cell("3 min ago")]]
    line = render(columns, rows, 60)[1]
    assert line.startswith("k3f9x2  nnnn")
    assert line.endswith("…  succeeded  3 min ago")


def test_the_widest_column_gives_way_first_and_spare_ones_last() -> None:
    columns = [Column("A"), Column("B"), Column("SPARE", spare=1)]
    rows = [[Cell("a" * 10), Cell("b" * 50), Cell("c" * 5)]]
    assert render(columns, rows, 40)[1] == f"{'a' * 10}  {'b' * 20}…  ccccc"
    assert "SPARE" not in render(columns, rows, 20)[0]


def test_without_a_terminal_nothing_is_cut() -> None:
    assert "n" * 300 in render([Column("NAME")], [[Cell("n" * 300)]], None)[1]


@given(TEXTS, st.integers(10, 40), st.integers(0, 10))
def test_paragraphs_fit_and_lose_no_word(text: str, width: int, indent: int) -> None:
    broken = paragraphs(text, width, indent=indent)
    limit = width if width - indent >= 8 else None
    if limit is not None:
        first, *others = broken.split("\n")
        assert width_of(first) <= width - indent
        assert all(width_of(line) <= width for line in others)
    assert "".join(broken.split()) == "".join(text.split())


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_column_that_wraps_loses_no_word_and_what_is_below_it_has_its_own_line(width: int) -> None:
    columns = [Column("ITEM", fixed=True), Column("WHAT", wraps=True), Column("TRY", below=True)]
    asked = "wick asks which of the two is to be lit first, because the evening does not wait: lamp or watchman?"
    heading, *lines = render(columns, [[Cell("k7m2p9"), Cell(asked), Cell("lamp run answer wick")]], width)
    assert heading.endswith("WHAT\x1b[0m")
    assert all(width_of(line) <= width for line in lines)
    assert [line[8:] for line in lines][-1] == "Try: lamp run answer wick"
    assert " ".join(line[8:] for line in lines[:-1]) == asked
    assert lines[0].startswith("k7m2p9  wick")
    assert all(line.startswith(" " * 8) for line in lines[1:])


def test_where_all_fits_one_line_a_row_takes_one() -> None:
    columns = [Column("WHAT", wraps=True), Column("TRY", below=True)]
    assert render(columns, [[Cell("It asks."), Cell("lamp inbox")]], 80)[1:] == ["It asks.  lamp inbox"]
