"""A thousand runs end while their webhook fails and loses answers, with kills in between: told once, or in doubt."""

import base64
import os
from pathlib import Path

import pytest
from automation_watch import look
from crew import JobPool
from drill_city import Town
from notice_load import drill, unaccounted

from lamplighter.testing.processes import children
from lamplighter.testing.webhooks import receiving

COUNT = 1000
KILLS = 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_thousand_notices_arrive_once_each_or_in_doubt(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    counts: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEAM_SECRET", base64.b64encode(os.urandom(24)).decode())
    town = Town(tmp_path / "town")
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    town.configure(f'[store]\nurl = "{url}"\n')
    with children() as started, receiving() as receiver:
        trouble = drill(town.root, JobPool.hired(started), receiver, COUNT, kills=KILLS)
    notices = look(town.root, lambda tx: tx.notices.page(limit=100_000))
    twice = sum(number > 1 for number in trouble.taken.values())
    doubts = sum(one.doubts for one in notices)
    counts |= {"notices": len(notices), "kills": KILLS, "answers_lost": trouble.lost, "twice": twice, "doubts": doubts}
    assert unaccounted(town.root, trouble) == []
    assert len(trouble.taken) == COUNT
