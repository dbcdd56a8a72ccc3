"""What tells that a program stands at a permission prompt of its own."""

import pytest

from lamplighter.domain.sessions.asking import LONGEST, asked_last, asked_on, asked_while_drawing, choices_on
from lamplighter.domain.sessions.presets.codex import CODEX as PRESET

# ruff: noqa: RUF001  the signs that programs draw
CLAUDE = """
╭──────────────────────────────────────────────╮
│ Bash command                                 │
│                                              │
│   rm -rf build                               │
│   Remove the build directory                 │
│                                              │
│ Do you want to proceed?                      │
│ ❯ 1. Yes                                     │
│   2. Yes, and don't ask again                │
│   3. No, and tell Claude what to do          │
╰──────────────────────────────────────────────╯
"""
CODEX = "\n  Would you like to run the following command?\n\n  $ make test\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n"


@pytest.mark.parametrize(
    ("screen", "told"),
    [
        (CLAUDE, "Bash command rm -rf build Remove the build directory Do you want to proceed?"),
        (CODEX, "Would you like to run the following command? $ make test"),
        ("Permission required\n  bash: ls", "Permission required bash: ls"),
        ("Overwrite it? [y/N] ", "Overwrite it? [y/N]"),
        ('❯ Try "fix the tests"\n  ? for shortcuts', ""),
        ("", ""),
        ("I asked whether to continue; done.", ""),
    ],
)
def test_a_prompt_is_seen_on_a_screen_with_what_it_is_about(screen: str, told: str) -> None:
    assert asked_on(screen) == told


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("working\nDelete the branch? (y/n) ", "working Delete the branch? (y/n)"),
        ("Allow this command\n", "Allow this command"),
        ('{"type":"text","text":"Do you want to proceed?"}\n', ""),
        ('Do you want to proceed?\n{"type":"turn"}\n', ""),
        ("Do you want to proceed?\nyes\n1\n2\n3\n", ""),
        ("", ""),
    ],
)
def test_without_a_terminal_only_the_end_of_plain_output_counts(output: str, told: str) -> None:
    assert asked_last(output) == told


@pytest.mark.parametrize(
    ("screen", "offered"),
    [
        (CLAUDE, [(("1",), "Yes"), (("2",), "Yes, and don't ask again"), (("3",), "No, and tell Claude what to do")]),
        (CODEX, [(("1",), "Yes, proceed (y)"), (("2",), "No (esc)")]),
        ("1. not a choice\nDelete it? (y/n) ", [(("y", "Enter"), "Yes"), (("n", "Enter"), "No")]),
        ("Overwrite it? [y/N]: ", [(("y", "Enter"), "Yes"), (("n", "Enter"), "No")]),
        ("Do you want to proceed?", []),
        ("What I did:\n1. this\n2. that", []),
        ("", []),
    ],
)
def test_the_choices_beside_a_question_are_known_by_their_keys(
    screen: str, offered: list[tuple[tuple[str, ...], str]]
) -> None:
    assert [(one.keys, one.text) for one in choices_on(screen)] == offered


def test_what_is_asked_is_told_in_short() -> None:
    assert len(asked_on("x" * 5000 + " do you want to proceed?")) <= LONGEST + 1


DRAWS = """
• Running touch lit

  Would you like to run the following command?

  Environment: local

  Reason: Shall the lamp be lit?

  $ touch lit

› 1. Yes, proceed (y)
  2. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
"""


def test_of_a_program_that_draws_only_its_own_prompt_counts_and_only_at_the_end() -> None:
    asked = "Would you like to run the following command? Environment: local Reason: Shall the lamp be lit? $ touch lit"
    assert asked_while_drawing(DRAWS, PRESET.asks).endswith(asked)
    assert asked_while_drawing(DRAWS + "one\ntwo\nthree\n", PRESET.asks) == "", "it was answered, and goes on"
    assert asked_while_drawing(CLAUDE, PRESET.asks) == "", "a screen that shows such words while it is at work"
