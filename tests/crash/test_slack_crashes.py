"""A daemon killed around what it posts in Slack, between the commit and the post and after it: it stands there once."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from automation_watch import rows, wait_until, write
from crew import JobPool
from slack_load import environment, install
from test_automation_crashes import define

from lamplighter.domain.access import Role
from lamplighter.domain.inbox.notices import NoticeState
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.crash import CrashPoint
from lamplighter.store.members import MemberRow
from lamplighter.store.slack import Person
from lamplighter.store.tx import Tx
from lamplighter.testing.processes import Children
from lamplighter.testing.slack_server import SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN, BOT_USER, TEAM, envelope

FAILS = '[automation]\nexec = "exit 1"\ngate = "cooldown"\ninterval = "1h"\n'
CONFIG = """
[[notifications.destinations]]
name = "ops"
kind = "slack_channel"
channel = "C1"
"""
PROGRAM = """#!/bin/sh
[ "$1" = --version ] && { echo "codex-cli 1.2.3"; exit 0; }
echo '{"type":"thread.started","thread_id":"th-1"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Lit."}}'
"""


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
def crew(city: Path, slack: SlackServer, processes: Children, monkeypatch: pytest.MonkeyPatch) -> JobPool:
    programs = city / "programs"
    programs.mkdir()
    (programs / "codex").write_text(PROGRAM)
    (programs / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(city.parent))
    monkeypatch.setenv("LAMP_SLACK_API_URL", slack.api)
    with (city / "city.toml").open("a", encoding="utf-8") as file:
        file.write(CONFIG)
    install(city, environment(slack), "--preset", "codex", "--mode", "full_access", socket=True)
    return JobPool.hired(processes)


def live(crew: JobPool, city: Path, point: CrashPoint | None = None) -> None:
    crew.live("one", city, "up", point="" if point is None else point.value)


@pytest.mark.timeout(300)
def test_killed_around_each_post_it_stands_there_once(city: Path, slack: SlackServer, crew: JobPool) -> None:
    define(city, "nightly", FAILS)
    write(city, _ann)
    for point in (CrashPoint.NOTICE_BEFORE_SEND, CrashPoint.NOTICE_AFTER_SEND):
        live(crew, city, point)
        assert crew.crashed("one") == -signal.SIGKILL
    live(crew, city, CrashPoint.TURN_BEFORE_POST)
    wait_until(city, lambda tx: [one.state for one in tx.notices.page()] == [NoticeState.SENT])
    assert len(slack.texts("C1")) == 1
    slack.wait_until(lambda: slack.sockets == 2)
    said = slack.say("C1", "U1", f"<@{BOT_USER}> light the lamps") | {"type": "app_mention"}
    slack.deliver("events_api", envelope(said, "Ev1"), "env-1")
    assert crew.crashed("one") == -signal.SIGKILL
    live(crew, city, CrashPoint.TURN_AFTER_POST)
    assert crew.crashed("one") == -signal.SIGKILL
    live(crew, city)
    wait_until(city, lambda tx: _told(tx) and not slack.messages["C1"][1].get("reactions"))
    assert slack.texts("C1")[2:] == ["Lit."]
    assert rows(city, "SELECT state, doubts FROM side_effects") == 2 * [{"state": "done", "doubts": 0}]
    saved = city.parent / "saved"
    line = [sys.executable, "-m", "lamplighter", "--city", str(city), "backup", str(saved)]
    subprocess.run(line, check=True, capture_output=True, timeout=60)
    assert holding_tokens(city, saved) == []


OF_A_STREAM = (
    CrashPoint.STREAM_BEFORE_OPEN, CrashPoint.STREAM_AFTER_OPEN, CrashPoint.STREAM_BEFORE_APPEND,
    CrashPoint.STREAM_AFTER_APPEND, CrashPoint.STREAM_BEFORE_STOP, CrashPoint.STREAM_AFTER_STOP,
)  # fmt: skip


@pytest.mark.timeout(600)
def test_killed_around_each_call_of_a_stream_each_word_stands_there_once(
    city: Path, slack: SlackServer, crew: JobPool
) -> None:
    slack.streams = True
    write(city, _ann)
    for number, point in enumerate(OF_A_STREAM):
        live(crew, city, point)
        slack.wait_until(lambda: slack.sockets == 2)
        said = slack.say("C1", "U1", f"<@{BOT_USER}> light the lamps") | {"type": "app_mention"}
        slack.deliver("events_api", envelope(said, f"Ev{number}"), f"env-{number}")
        assert crew.crashed("one") == -signal.SIGKILL, point
        live(crew, city)
        wait_until(city, lambda tx, runs=number + 1: len(tx.runs.page()) == runs and _told(tx))
        ours = [one for one in slack.messages["C1"] if one.get("thread_ts") == said["ts"]]
        assert [one["text"].strip() for one in ours] == ["Lit."], point
        assert slack.streaming("C1") == []
        assert crew.stop("one") == 0
    assert len(slack.of("chat.startStream")) == len(OF_A_STREAM)
    effects = rows(city, "SELECT state, doubts FROM side_effects")
    assert effects == len(OF_A_STREAM) * [{"state": "done", "doubts": 0}]


def holding_tokens(city: Path, saved: Path) -> list[str]:
    """The files of the city, its logs and its database among them, and of its backup, in which a token stands."""
    with tarfile.open(saved) as archive:
        parts = {one.name: archive.extractfile(one) for one in archive.getmembers() if one.isfile()}
        found = {name: part.read() for name, part in parts.items() if part is not None}
    assert found
    found |= {str(one): one.read_bytes() for one in city.rglob("*") if one.is_file()}
    return [name for name, data in found.items() if any(token.encode() in data for token in (BOT_TOKEN, APP_TOKEN))]


def _ann(tx: Tx) -> None:
    now = SystemClock().now()
    tx.members.add(MemberRow("ann", Role.ADMIN, now, "owner"))
    tx.slack.put_person(Person(TEAM, "U1", "ann", "link", None, now))


def _told(tx: Tx) -> bool:
    return all(one.ended for one in tx.runs.page()) and not tx.db.rows(
        "SELECT id FROM slack_threads WHERE is_followed = 1", {}
    )
