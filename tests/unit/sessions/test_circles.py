"""Going round in circles: a table of transcripts, and how often the last call was made in a row."""

import pytest

from lamplighter.domain.sessions.circles import Circle, circle_of, message
from lamplighter.domain.sessions.transcript import SessionEvent, Text, ToolEnded, ToolStarted, TurnEnded, Usage


def call(number: int, asked: str = "ls", gave: str = "empty", *, ok: bool = True) -> list[SessionEvent]:
    return [ToolStarted(f"t{number}", "Bash", asked), ToolEnded(f"t{number}", ok, gave)]


def calls(*given: tuple[str, str]) -> list[SessionEvent]:
    return [event for number, (asked, gave) in enumerate(given) for event in call(number, asked, gave)]


@pytest.mark.parametrize(
    ("events", "times"),
    [
        ([], 0),
        (calls(("ls", "a")), 1),
        (calls(("ls", "a"), ("ls", "a"), ("ls", "a")), 3),
        (calls(("ls", "a"), ("ls", "b"), ("ls", "b")), 2),
        (calls(("ls", "a"), ("pwd", "a"), ("ls", "a")), 1),
        (calls(("ls", "a"), ("ls", "a"), ("cat x", "a"), ("ls", "a"), ("ls", "a")), 2),
        ([*call(1), Text("Again."), Usage(1, 1), TurnEnded(), *call(2)], 2),
        ([*call(1), *call(2, ok=False)], 1),
        ([*call(1), ToolEnded("unknown", True, "empty")], 1),
        ([*call(1), ToolStarted("t9", "Bash", "ls")], 1),
        (
            [
                ToolStarted("a", "Bash", "ls"), ToolStarted("b", "Bash", "ls"), ToolEnded("b", True, "x"),
                ToolEnded("a", True, "x"),
            ],
            2,
        ),
        ([ToolStarted("a", "Read"), ToolEnded("a", True), ToolStarted("b", "Read"), ToolEnded("b", True)], 0),
        ([*call(1), ToolStarted("b", "Read"), ToolEnded("b", True), *call(2)], 1),
    ],
)  # fmt: skip
def test_only_the_same_call_with_the_same_result_in_a_row_counts(events: list[SessionEvent], times: int) -> None:
    whole = circle_of(events)
    assert whole.times == times
    piecewise = Circle()
    for event in events:
        piecewise = circle_of([event], piecewise)
    assert piecewise == whole, "however the reading was cut"


def test_a_circle_is_told_from_its_limit_on_with_the_call_and_the_result_quoted() -> None:
    circle = circle_of(calls(*[("make test", "2 failed")] * 3))
    assert circle.told(0) == circle.told(4) == ""
    told = circle.told(3)
    assert told == "It called `Bash` (make test) 3 times in a row, each time with the same result: 2 failed"
    assert "You called `Bash` (make test)" in message(told)
    long = circle_of(call(1, "x" * 1000, "y" * 1000, ok=False)).told(1)
    assert len(long) < 800
    assert "the same failure" in long


def test_calls_that_never_end_are_forgotten_in_time() -> None:
    circle = circle_of(ToolStarted(str(number), "Bash", "x") for number in range(1000))
    assert len(circle.started) <= 100
