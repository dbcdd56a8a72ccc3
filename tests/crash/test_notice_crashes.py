"""A daemon killed around the sending of a notice: it arrives once, or its doubt is on record."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from automation_watch import rows, wait_until
from test_automation_crashes import crash, define, start

from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.kit.crash import CrashPoint
from lamplighter.testing.processes import Children
from lamplighter.testing.webhooks import Receiver, receiving

FAILS = '[automation]\nexec = "exit 1"\ngate = "cooldown"\ninterval = "1h"\n'
DESTINATION = """
[[notifications.destinations]]
name = "team"
kind = "webhook"
url = "{url}/hook"
signing_env = "TEAM_SECRET"
allow_private = true
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.mark.parametrize(
    ("point", "doubts"),
    [
        (CrashPoint.NOTICE_BEFORE_SEND, 1),
        (CrashPoint.NOTICE_AFTER_SEND, 0),
    ],
)
def test_a_notice_arrives_once(
    point: CrashPoint,
    doubts: int,
    city: Path,
    environment: dict[str, str],
    processes: Children,
    receiver: Receiver,
) -> None:
    environment["TEAM_SECRET"] = base64.b64encode(os.urandom(24)).decode()
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(DESTINATION.format(url=receiver.url))
    define(city, "nightly", FAILS)
    crash(processes, city, environment, point)
    start(processes, city, environment)
    wait_until(city, lambda tx: [one.state for one in tx.notices.page()] == [NoticeState.SENT])
    assert len(receiver.received) == 1
    assert rows(city, "SELECT state, doubts FROM side_effects") == [{"state": "done", "doubts": doubts}]
