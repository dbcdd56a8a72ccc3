"""What makes two failures the same."""

import pytest

from lamplighter.domain.inbox.fingerprint import last_line, of_failure, of_outbox, of_question, settled_line

CASES = [
    # numbers
    ("took 3.2s", "took <n>s"),
    ("5 of 17 tests failed", "<n> of <n> tests failed"),
    ("exit code 137", "exit code <n>"),
    ("connect to 10.0.0.7:5432 failed", "connect to <n>:<n> failed"),
    ("line 12, column 3", "line <n>, column <n>"),
    ("1,234,567 rows", "<n> rows"),
    # ids
    ("run_01m7nr24cfvbqyc3hznjpfd2de is gone", "<id> is gone"),
    ("commit 3f2a9bc does not apply", "commit <id> does not apply"),
    ("0xDEADBEEF at 0x1f", "<id> at <id>"),
    ("request 6f1d2c3b-1111-4222-8333-444455556666 refused", "request <id> refused"),
    ("token sk-proj-4f9a8b7c6d5e4f3a expired", "token sk-proj-<id> expired"),
    # paths
    ("/home/eva/work/app.py: No such file", "<path>: No such file"),
    ("cannot open ~/notes/today.md", "cannot open <path>"),
    ("../lib/x.c:14: error", "<path>:<n>: error"),
    ("src/app/main.py: SyntaxError", "<path>: SyntaxError"),
    (r"C:\work\app.exe crashed", "<path> crashed"),
    ("GET https://api.example.org/v1/items/7?x=1 gave 503", "GET https://api.example.org<path> gave <n>"),
    # times
    ("2026-11-17T21:32:53.123Z timeout", "<time> timeout"),
    ("2026-11-17 21:32:53 +0100 timeout", "<time> timeout"),
    ("at 21:32:53 it stopped", "at <time> it stopped"),
    ("Nov 17 21:32:53 host died", "<time> host died"),
    # what stays as it is
    ("Permission denied (publickey)", "Permission denied (publickey)"),
    ("ModuleNotFoundError: No module named 'yaml'", "ModuleNotFoundError: No module named 'yaml'"),
    ("", ""),
]


@pytest.mark.parametrize(("line", "settled"), CASES)
def test_what_differs_from_one_time_to_the_next_is_replaced(line: str, settled: str) -> None:
    assert settled_line(line) == settled


@pytest.mark.parametrize(("line", "settled"), CASES)
def test_a_line_that_is_settled_stays_as_it_is(line: str, settled: str) -> None:
    assert settled_line(settled_line(line)) == settled


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo\n\n  \n", "two"),
        ("", ""),
        (" \n\t", ""),
        ("\x1b[31mred\x1b[0m  words", "red words"),
        ("x" * 5000, "x" * 300),
    ],
)
def test_the_last_line_that_says_something_counts(text: str, line: str) -> None:
    assert last_line(text) == line


def test_failures_in_the_same_way_are_the_same() -> None:
    first = of_failure("nightly", "failed", "exit_1", "log\ncannot reach 10.0.0.1 after 3 s")
    assert first == of_failure("nightly", "failed", "exit_1", "other log\ncannot reach 10.0.0.9 after 12 s")


@pytest.mark.parametrize(
    "other",
    [
        ("weekly", "failed", "exit_1", "cannot reach it"),
        ("nightly", "timed_out", "exit_1", "cannot reach it"),
        ("nightly", "failed", "exit_2", "cannot reach it"),
        ("nightly", "failed", "exit_1", "disk full"),
    ],
)
def test_another_automation_state_reason_or_line_is_another_failure(other: tuple[str, str, str, str]) -> None:
    assert of_failure("nightly", "failed", "exit_1", "cannot reach it") != of_failure(*other)


def test_a_question_stands_for_itself() -> None:
    assert of_question("run_1") != of_question("run_2")


def test_work_given_up_is_the_same_by_kind_and_error() -> None:
    assert of_outbox("write_artifact", "No space left: /a/b") == of_outbox("write_artifact", "No space left: /c/d")
    assert of_outbox("write_artifact", "No space left") != of_outbox("stop_session", "No space left")
