"""What a person is told who subscribes to the end of a session: which one, by its short id."""

from datetime import UTC, datetime

import pytest

from lamplighter.cli.session import _subscribed
from lamplighter.services.subscriptions import SubscriptionView


@pytest.mark.parametrize(
    ("session", "told"),
    [
        ("ses_01m7raczndzdpvrh0evh9ztq4w", "desk is told when session 9ztq4w ends."),
        ("run_01m7r9yn77v2rk49ag6z1skd8k", "desk is told when the next session of run 1skd8k ends."),
    ],
)
def test_the_session_or_run_is_named_by_its_short_id(
    session: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _subscribed(SubscriptionView(session, "desk", "human", datetime(2026, 11, 17, tzinfo=UTC), False, None), None)
    assert capsys.readouterr().out.strip() == told
