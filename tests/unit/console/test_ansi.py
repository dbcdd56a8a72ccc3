"""What programs print, as a page shows it: colours as classes, and nothing else that terminals obey."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.web.console.ansi import Piece, lines_of, plain

ESC = "\x1b"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("plain", [("plain", "")]),
        (f"{ESC}[31mred{ESC}[0m not", [("red", "fg-red"), (" not", "")]),
        (f"{ESC}[1;92mbright{ESC}[22m on", [("bright", "fg-bright-green b"), (" on", "fg-bright-green")]),
        (f"{ESC}[38;5;4mblue{ESC}[39m", [("blue", "fg-blue")]),
        (f"{ESC}[38;2;1;2;3mno theme{ESC}[m", [("no theme", "")]),
        (f"{ESC}[48;5;200mnor this", [("nor this", "")]),
        (f"{ESC}]0;a title\x07text", [("text", "")]),
        (f"{ESC}]8;;http://elsewhere{ESC}\\link{ESC}]8;;{ESC}\\", [("link", "")]),
        (f"{ESC}[2K{ESC}[1Gdone", [("done", "")]),
        ("10 %\r55 %\r100 %", [("100 %", "")]),
        (f"{ESC}[31m10 %\r100 %", [("100 %", "fg-red")]),
        ("bell\x07 and \x00nul", [("bell and nul", "")]),
        ("user\u202etxt.exe", [("usertxt.exe", "")]),
        (f"{ESC}[", []),
        (f"{ESC}[99999999999mhuge", [("huge", "")]),
    ],
)
def test_one_line(output: str, shown: list[tuple[str, str]]) -> None:
    (line,), left_out = lines_of(output)
    assert ([(piece.text, piece.look) for piece in line], left_out) == (shown, 0)


def test_a_colour_goes_on_in_the_next_line_until_it_ends() -> None:
    lines, _ = lines_of(f"{ESC}[32mone\ntwo{ESC}[0m\nthree\n")
    assert lines == [(Piece("one", "fg-green"),), (Piece("two", "fg-green"),), (Piece("three", ""),)]


def test_of_long_output_the_last_lines_are_shown_and_the_others_are_counted() -> None:
    lines, left_out = lines_of("".join(f"{number}\n" for number in range(100)), most=10)
    assert (lines[0][0].text, lines[-1][0].text, left_out) == ("90", "99", 90)


def test_nothing_is_no_line() -> None:
    assert lines_of("") == ([], 0)


@given(st.text(alphabet=st.one_of(st.sampled_from(f'{ESC}[];:0123456789m\r\n\x07<&"'), st.characters())))
def test_whatever_is_printed_no_control_is_left_and_the_classes_are_ours(output: str) -> None:
    for line in lines_of(output)[0]:
        for piece in line:
            assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e]", piece.text)
            assert re.fullmatch(r"[a-z -]*", piece.look)


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_text_without_controls_is_shown_as_it_is(output: str) -> None:
    assert plain(output) == output
