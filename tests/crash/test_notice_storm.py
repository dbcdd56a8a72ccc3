"""Runs end while their webhook fails and loses answers, and the daemon is killed: each is told once, or in doubt."""

import base64
import os
from pathlib import Path

import pytest
from automation_watch import look
from crew import JobPool
from notice_load import drill, unaccounted

from lamplighter.testing.processes import children
from lamplighter.testing.webhooks import receiving

COUNT = 60


def test_every_notice_arrives_once_or_its_doubt_is_on_record(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_SECRET", base64.b64encode(os.urandom(24)).decode())
    with children() as started, receiving() as receiver:
        trouble = drill(city, JobPool.hired(started), receiver, COUNT)
    assert unaccounted(city, trouble) == []
    assert len(trouble.taken) == COUNT
    notices = look(city, lambda tx: tx.notices.page(limit=1000))
    assert len(notices) == COUNT
    assert sum(one.doubts for one in notices) >= trouble.lost > 0
    assert sum(one.attempts for one in notices) > COUNT
