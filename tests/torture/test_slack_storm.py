"""A thousand runs end while Slack is away, and are told while it fails and loses answers, with kills in between."""

from pathlib import Path

import pytest
from crew import JobPool
from drill_city import Town
from slack_load import drill, environment, furnish, of_runs, told_of, unaccounted

from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.testing.processes import children
from lamplighter.testing.slack_server import slack_server

COUNT = 500
"""In each of two channels."""
KILLS = 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_thousand_runs_are_told_in_slack(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    counts: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town = Town(tmp_path / "town")
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    town.configure(f'[store]\nurl = "{url}"\n')
    with slack_server() as slack, children() as started:
        monkeypatch.setenv("LAMP_SLACK_API_URL", slack.api)
        furnish(town.root, slack, environment(slack))
        trouble = drill(town.root, JobPool.hired(started), slack, COUNT, kills=KILLS)
    seen, unseen = told_of(town.root, slack)
    doubts = sum(one.doubts for one in of_runs(town.root))
    undecided = sum(one.state is not NoticeState.SENT for one in of_runs(town.root))
    counts |= {
        "notices": 2 * COUNT, "arrived": len(seen) + len(unseen), "in doubt twice, told so": undecided,
        "kills": KILLS, "lost": trouble.lost, "doubts": doubts,
        "twice where it may look": sum(number > 1 for number in seen.values()),
        "twice where it may not": sum(number > 1 for number in unseen.values()),
        "most often": max(unseen.values()),
    }  # fmt: skip
    assert unaccounted(town.root, slack) == []
    assert len(seen) == COUNT
    assert len(unseen) >= COUNT - undecided
