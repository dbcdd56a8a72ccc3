from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.kit.durations import LONGEST, coming, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("7d", 604800), ("2w", 1209600), (" 5m ", 300),
        ("250ms", 0.25), ("3us", 0.000003), ("3µs", 0.000003), ("1500ns", 0.000002), ("1m1m", 120), ("0s", 0),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "5", "s", "5x", "-5s", "1h 30m", "1.h", ".5h", "1e3s", "5S", "٣s", "5s!", "1" * 500 + "s"]
)
def test_what_is_no_duration_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="90s"):
        parse_duration(text)


def test_a_duration_beyond_what_can_be_kept_is_told() -> None:
    with pytest.raises(ValueError, match="longer than any"):
        parse_duration("9" * 30 + "w")
    with pytest.raises(ValueError, match="longer than any"):
        parse_duration("365001d")


def test_the_longest_duration_can_be_added_to_a_time_and_taken_from_it() -> None:
    longest = parse_duration("365000d")
    assert longest == LONGEST
    now = datetime(2026, 11, 19, tzinfo=UTC)
    assert now - longest < now < now + 5 * longest


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_every_duration_survives_being_written_and_read(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == span


@given(st.timedeltas(max_value=timedelta(microseconds=-1), min_value=timedelta(days=-999_999_000)))
def test_a_negative_duration_is_its_positive_with_a_sign(span: timedelta) -> None:
    assert format_duration(span) == "-" + format_duration(-span)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (5400, "1h30m"), (0.25, "250ms"), (86400, "1d"), (61.5, "1m1.5s"), (1e-6, "0.001ms")],
)
def test_the_form_is_the_shortest(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-3, "now"), (0, "now"), (0.2, "in 1 s"), (37, "in 37 s"), (256, "in 4 min 16 s"), (599.5, "in 10 min"),
        (2841, "in 47 min"), (3600, "in 1 h"), (7500, "in 2 h 5 min"), (273_600, "in 3 d 4 h"),
    ],
)  # fmt: skip
def test_a_time_to_come_has_no_seconds_where_nobody_counts_them(seconds: float, told: str) -> None:
    assert coming(timedelta(seconds=seconds)) == told
