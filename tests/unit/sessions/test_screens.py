# ruff: noqa: RUF001  the signs that programs really draw
"""What is read off a screen: prompts, questions, and text that is safe to type."""

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.screens import answer, is_ready, typed

NO_FIRST = """
 Quick safety check: is this a project you trust?
 ❯ 1. No, exit
   2. Yes, I trust this folder
 Enter to confirm
"""
YES_FIRST = NO_FIRST.replace("1. No, exit", "1. Yes, proceed").replace("2. Yes, I trust this folder", "2. No, exit")
TRUST = Dialog("quick safety check", choose="Yes")


def test_the_wanted_option_is_chosen_wherever_the_pointer_stands() -> None:
    assert answer(NO_FIRST, [TRUST]) == (TRUST, ("Down", "Enter"))
    assert answer(YES_FIRST, [TRUST]) == (TRUST, ("Enter",))
    below = "Quick safety check\n  1. Yes\n  2. Maybe\n❯ 3. No\n"
    assert answer(below, [TRUST]) == (TRUST, ("Up", "Up", "Enter"))


def test_a_question_without_readable_options_gets_the_keys_it_is_known_for() -> None:
    known = Dialog("bypass permissions mode", choose="Yes", keys=("Down", "Enter"))
    assert answer("Bypass Permissions mode!", [known]) == (known, ("Down", "Enter"))


def test_a_screen_without_a_question_needs_no_answer() -> None:
    assert answer("❯ ready", [TRUST]) is None
    assert answer("", []) is None


def test_readiness_is_a_line_that_begins_with_the_prompt_or_a_mark_anywhere() -> None:
    assert is_ready("hello\n│ ❯\u00a0 type here │\n", Readiness(prompt_prefix="❯ "))
    assert not is_ready("it said ❯ once", Readiness(prompt_prefix="❯"))
    assert is_ready("… Enter to send …", Readiness(mark="Enter to send"))
    assert not is_ready("anything", Readiness())


def test_control_characters_are_not_typed() -> None:
    assert typed("a\x1b[201~b\x03\r\nc\td\n\n") == "a[201~b\nc\td"
