"""The last activity of a session beside its start."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.sessions.idle import activity_since

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        (None, timedelta(0)),
        (timedelta(minutes=3), timedelta(minutes=3)),
        (timedelta(seconds=-5), timedelta(0)),
        (timedelta(seconds=-5, microseconds=-1), timedelta(seconds=-5, microseconds=-1)),
        (timedelta(hours=-1), timedelta(hours=-1)),
    ],
    ids=["none yet", "after the start", "coarser than the start", "too early to be coarse", "the clock was set back"],
)
def test_it_is_never_hidden_by_the_start(activity: timedelta | None, expected: timedelta) -> None:
    assert activity_since(START, None if activity is None else START + activity) == START + expected
