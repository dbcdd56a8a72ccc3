# ruff: noqa: RUF001  the signs that programs really draw
"""What is read off a screen: prompts, questions, and text that is safe to type."""

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.domain.sessions.screens import InputRow, answer, is_ready, pastes_shown, stands, typed

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


def test_of_several_options_that_fit_the_one_that_remembers_nothing_is_chosen() -> None:
    screen = """
│ Confirm folder trust
│   1. No (Esc)
│ ❯ 2. Yes, and remember this folder for future sessions
│   3. Yes                                                    │
"""
    trust = Dialog("confirm folder trust", choose="Yes")
    assert answer(screen, [trust]) == (trust, ("Down", "Enter"))
    assert answer(screen.replace("  3. Yes", "  3. No ").replace("1. No (Esc)", "1. Yes"), [trust]) == (
        trust, ("Up", "Enter"),
    )  # fmt: skip


def row(*lines: str, cursor: tuple[int, int]) -> InputRow:
    return InputRow(lines, *cursor)


TEXT = "Light the lamps of Mill Lane before seven o'clock."


def test_text_stands_in_the_input_row_when_its_end_is_right_before_the_cursor() -> None:
    assert stands(TEXT, row("┌─", f"│ ❯ {TEXT}      │", "└─", cursor=(1, 4 + len(TEXT))))
    assert not stands(TEXT, row(f"❯ {TEXT}", "● Done.", "❯ ", cursor=(2, 2))), "it has moved up into the conversation"
    assert not stands(TEXT, row(f"$ {TEXT}", "", cursor=(1, 0)))
    assert not stands("", row("❯ ", cursor=(0, 2)))


def test_text_that_was_broken_between_two_rows_still_stands() -> None:
    assert stands(
        TEXT,
        row("│ ❯ Light the lamps of Mill Lane before seven │", "│   o'clock.                     │", cursor=(1, 12)),
    )
    assert not stands(
        TEXT, row("│ ❯ Light the lamps of Mill Lane before six │", "│   o'clock.          │", cursor=(1, 12))
    )


def test_wide_characters_take_two_columns() -> None:
    assert stands("灯を灯す", row("❯ 灯を灯す and more", cursor=(0, 10)))


def test_a_paste_is_shown_by_a_mark_in_its_place() -> None:
    assert pastes_shown(row("❯ [Pasted text #1 +3 lines]", cursor=(0, 27))) == 1
    assert pastes_shown(row("❯ [Paste #1 - 3 lines] [Pasted Content 1024 chars]", cursor=(0, 50))) == 2
    assert pastes_shown(row("❯ nothing", cursor=(0, 9))) == 0


def test_of_a_text_of_several_lines_the_last_one_stands_before_the_cursor() -> None:
    assert stands("Then count them:\n\nall of them.", row("> Then count them:", "", "all of them.", cursor=(2, 12)))
