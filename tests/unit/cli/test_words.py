"""Values in words for people."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.cli import words
from lamplighter.cli.policies import policy_words
from lamplighter.domain.automations.policies import (
    Budget,
    CatchUp,
    CatchUpMode,
    Notify,
    Overlap,
    Policies,
    Retry,
)
from lamplighter.domain.automations.shape import policies_shape

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"), (-0.4, "now"), (-1, "1 s ago"), (-119, "119 s ago"), (-120, "2 min ago"), (-7199, "119 min ago"),
        (-7200, "2 h ago"), (-3 * 86400, "3 d ago"), (37, "in 37 s"), (36.2, "in 37 s"), (7300, "in 2 h 1 min"),
        (9300, "in 2 h 35 min"), (90 * 86400, "2027-02-15"),
    ],
)  # fmt: skip
def test_past_times_are_told_in_one_unit_and_those_to_come_in_two(seconds: float, text: str) -> None:
    assert words.ago(NOW + timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.04, "40 ms"), (1, "1 s"), (1.44, "1.4 s"), (12.4, "12 s"), (59.7, "1 min"), (185, "3 min 5 s"),
        (3600, "1 h"), (7500, "2 h 5 min"), (3 * 86400 + 4 * 3600, "3 d 4 h"), (-5, "0 s"),
    ],
)  # fmt: skip
def test_spans_have_at_most_two_units(seconds: float, text: str) -> None:
    assert words.span(timedelta(seconds=seconds)) == text


def test_one_is_not_many() -> None:
    assert [words.counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed([]) == ""


@pytest.mark.parametrize(
    ("reason", "state", "told"),
    [
        ("canceled", "canceled", ""), ("timed_out", "timed_out", ""), ("Timed out.", "timed_out", ""),
        (None, "failed", ""),
        ("exit_3", "failed", "exit 3"), ("deadline_exceeded", "timed_out", "deadline exceeded"),
        ("the file a_b is gone", "failed", "the file a_b is gone"),
    ],
)  # fmt: skip
def test_a_reason_never_repeats_the_state(reason: str | None, state: str, told: str) -> None:
    assert words.reason(reason, state) == told


def test_short_ids_tell_the_ids_of_a_table_apart() -> None:
    one, two = "run_01m7nr6nw5xe0aahdscs3ad9j4", "run_01m7nr6nw5xe0aahdscs3bd9j4"
    other = "ses_01m7nr6nw5xe0aahdscs3ad9j4"
    assert words.short_ids([one]) == {one: "3ad9j4"}
    assert words.short_ids([one, one[:-6] + "9ad9j4"])[one] == "3ad9j4"
    assert words.short_ids([one, one[:-7] + "x3ad9j4"])[one] == "s3ad9j4"
    assert words.short_ids([one, two, "sf-4k2", "text"]) == {one: "3ad9j4", two: "3bd9j4"}
    assert words.short_ids([one, other]) == {one: "3ad9j4", other: "3ad9j4"}
    assert words.shortened(f"run:{one} and {two}") == "run:3ad9j4 and 3bd9j4"


def test_no_value_is_shown_as_python_would() -> None:
    assert words.words({"a": 1, "b": True}) == "a=1, b=yes"
    assert words.words([timedelta(seconds=90), None, False]) == "1 min 30 s, , no"
    assert words.words("a\x1b[31mb") == "a\N{REPLACEMENT CHARACTER}[31mb"


def test_usual_policies_are_not_told() -> None:
    assert policy_words(policies_shape(Policies())) == []
    assert policy_words({}) == []


def test_every_policy_has_its_sentence() -> None:
    unusual = Policies(
        overlap=Overlap.REPLACE,
        catch_up=CatchUp(CatchUpMode.ALL),
        retry=Retry(1),
        auto_disable_after=0,
        quiet_after=timedelta(days=1),
        precheck="test -s inbox",
        timeout=timedelta(minutes=10),
        deadline=timedelta(hours=1),
        idle_timeout=timedelta(seconds=90),
        budget=Budget(cost=2.5, tokens=1),
        notify=Notify(("inbox",), after=3),
        jitter=timedelta(seconds=30),
    )
    told = policy_words(policies_shape(unusual))
    assert told == [
        "A run under way is canceled for the next one.",
        "Every slot that passed unseen within 12 h is made up for, at most 10.",
        "A failed run is tried again once, first after 30 s.",
        "Failures never switch it off.",
        "It is told when nothing has fired for 1 d.",
        "Before each run, `test -s inbox` decides whether there is anything to do.",
        "The action may take 10 min.",
        "A run may take 1 h in all.",
        "An agent that is silent for 1 min 30 s is ended.",
        "A run may use at most 2.5 USD and 1 token.",
        "Tells inbox of runs that are failed, needs you or timed out; of failures from the 3rd of one kind on.",
        "Its times are spread by up to 30 s.",
    ]
