"""What `lamp automation create` asks of a person at a terminal: the mode, which is never guessed."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

from lamp_program import ENVIRONMENT, here

WITHIN_S = 120


def talk(*arguments: str, answers: dict[str, str]) -> tuple[int, str]:
    """Run `lamp` on a terminal and give each answer once its question is shown; its status, and all that was shown."""
    main, terminal = pty.openpty()
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "lamplighter", *arguments],
            env=ENVIRONMENT | {"TERM": "dumb"}, stdin=terminal, stdout=terminal, stderr=terminal,
        )  # fmt: skip
        os.close(terminal)
        shown, left, until = "", dict(answers), time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            try:
                part = os.read(main, 4096)
            except OSError:  # the program has left, and with it the terminal
                break
            shown += part.decode()
            for question in [question for question in left if question in shown]:
                os.write(main, f"{left.pop(question)}\n".encode())
        return running.wait(WITHIN_S), shown
    finally:
        os.close(main)


def test_the_mode_is_asked_for_on_a_terminal_with_what_each_means_and_a_wrong_one_is_asked_again(
    tmp_path: Path,
) -> None:
    town = str(tmp_path / "town")
    assert here("init", town).code == 0
    asked = ("automation", "create", "light", "--prompt", "Go.", "--preset", "claude", "--manual", "--city", town)
    code, shown = talk(*asked, answers={"Mode (": "everything", "is not one of": "plan"})
    assert code == 0, shown
    assert "What may the agent do without asking?" in shown
    assert all(f"  {mode}" in shown for mode in ("approval", "plan", "full_access")), shown
    made = here("automation", "show", "light", "--json", "--city", town)
    assert '"mode": "plan"' in made.out, made.out

    refused = here("automation", "create", "trim", "--prompt", "Go.", "--preset", "claude", "--manual", "--city", town)
    assert refused.code == 2, "without a terminal nobody can be asked"
    assert "--mode" in refused.err


def test_all_that_is_left_out_is_asked_for_and_a_typing_error_is_asked_again(tmp_path: Path) -> None:
    town = str(tmp_path / "town")
    assert here("init", town).code == 0
    answers = {
        "Name:": "tidy", "have an agent do something": "1", "Command:": "true", "only by hand": "5",
        "By a cron line:": "99 * * * *", "minutes go from 0 to 59": "30 8 * * 1-5",
    }  # fmt: skip
    code, shown = talk("automation", "create", "--city", town, answers=answers)
    assert code == 0, shown
    assert "Created tidy: At 08:30 on Monday through Friday (on)." in shown
    refused = here("automation", "create", "trim", "--city", town)
    assert refused.code == 2
    assert "It is not said what it does." in refused.err
