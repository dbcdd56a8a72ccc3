"""Slack is away, then fails and loses answers while the daemon is killed: each run is told once, or in doubt."""

from pathlib import Path

import pytest
from crew import JobPool
from slack_load import drill, environment, furnish, of_runs, told_of, unaccounted

from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.testing.processes import children
from lamplighter.testing.slack_server import slack_server

COUNT = 12


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_run_is_told_once_in_slack_or_its_doubt_is_on_record(
    kind: str, request: pytest.FixtureRequest, city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[store]\nurl = "{url}"\n')
    with slack_server() as slack, children() as started:
        monkeypatch.setenv("LAMP_SLACK_API_URL", slack.api)
        furnish(city, slack, environment(slack))
        trouble = drill(city, JobPool.hired(started), slack, COUNT)
    assert unaccounted(city, slack) == []
    seen, unseen = told_of(city, slack)
    assert len(seen) == COUNT
    assert len(unseen) >= COUNT - sum(one.state is not NoticeState.SENT for one in of_runs(city))
    assert trouble.lost > 0
    assert sum(one.doubts for one in of_runs(city)) > 0
