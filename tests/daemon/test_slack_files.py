"""Files that are sent along in Slack reach the agent as files, and the bot's token reaches nobody but Slack."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from loops_city import Loops
from slack_city import hear
from slack_talk import count, ended, furnish, go, mention, send, until

from lamplighter.adapters.slack.attachments import Attachments, safe
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.domain.slack.events import said
from lamplighter.kit.clock import SystemClock
from lamplighter.ports.messenger import NotTaken
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.slack_server import SlackServer, slack_server
from lamplighter.testing.slack_shapes import BOT_ID, BOT_TOKEN, BOT_USER, TEAM


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        found.messages["C1"] = []
        yield found


@pytest.fixture
async def web(loops: Loops, slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    await furnish(loops, monkeypatch)
    async with hear(loops, slack) as client:
        yield client


async def test_files_that_are_sent_along_are_there_for_the_agent(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "what is this?")
    files = [slack.upload("../a lamp.png", b"PNG"), {"id": "F9", "name": "gone.png", "file_access": "check_file_info"}]
    await send(web, first | {"files": files, "subtype": "file_share", "type": "message"}, "Ev1")
    await until(loops, (loops.root / "turn1").exists)
    told = (loops.root / "turn1").read_text()
    [path] = [Path(word.rstrip(",.")) for word in told.split() if "lamp.png" in word]
    assert path.read_bytes() == b"PNG"
    assert path.is_relative_to(loops.root / ".gc/slack")
    assert path.stat().st_mode & 0o77 == 0
    assert "gone.png: Slack does not say where it is" in told
    go(loops, 1, "A lamp.")
    await ended(loops)


async def test_files_that_only_the_second_event_of_a_mention_tells_of_come_as_the_next_turn(
    loops: Loops, slack: SlackServer, web: httpx2.AsyncClient
) -> None:
    first = mention(slack, "what is this?")
    whole = first | {"files": [slack.upload("a.png", b"PNG")], "subtype": "file_share", "type": "message"}
    for number, event in enumerate((first, whole, whole, first)):
        await send(web, event, f"Ev{number}")
    go(loops, 1, "What?")
    go(loops, 2, "A lamp.")
    await ended(loops)
    assert "a.png" in (loops.root / "turn2").read_text()
    assert await loops.store.read(count("runs")) == 2


async def test_the_token_is_shown_to_slack_alone(slack: SlackServer) -> None:
    calls, file = SlackWebApi(slack.api), slack.upload("a.png", b"x" * 100)
    assert await calls.fetch(file["url_private_download"], BOT_TOKEN, most=100) == b"x" * 100
    with pytest.raises(NotTaken, match="more than"):
        await calls.fetch(file["url_private_download"], BOT_TOKEN, most=99)
    with pytest.raises(NotTaken, match="files:read"):
        await calls.fetch(file["url_private_download"], "xoxb-other", most=100)
    page = slack.upload("a.html", b"<p>A page.</p>", kind="text/html")
    url = page["url_private_download"]
    assert await calls.fetch(url, BOT_TOKEN, most=100, size=page["size"]) == b"<p>A page.</p>"
    for size, why in ((0, "did not say how long it is"), (99, "files:read")):
        with pytest.raises(NotTaken, match=why):
            await calls.fetch(url, BOT_TOKEN, most=100, size=size)
    for url in ("https://evil.example/files/F0", "https://slack.com.evil.example/", "http://slack.com/", "file:///x",
                "https://slack.com@evil.example/"):  # fmt: skip
        with pytest.raises(NotTaken, match="not kept by Slack"):
            await calls.fetch(url, BOT_TOKEN, most=100)


@pytest.mark.parametrize("name", ["..", "../../etc/passwd", ".ssh", "a/b\\c", "\0", "x" * 300, ""])
def test_a_name_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    kept = Path(Attachments(tmp_path / "slack", SystemClock()).keep(name, name, b"1")).resolve()
    assert kept.parent.parent == (tmp_path / "slack").resolve()
    assert len(safe(name)) <= 100


def test_two_files_with_one_long_name_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "slack").mkdir()
    (tmp_path / "slack" / "gone").symlink_to(tmp_path / "nothing")  # as one that another message has just forgotten
    kept = Attachments(tmp_path / "slack", SystemClock())
    paths = [Path(kept.keep("a", f"{number}-{'x' * 150}.png", b"1")) for number in (1, 2)]
    assert len(set(paths)) == 2
    assert {path.suffix for path in paths} == {".png"}


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC) + timedelta(days=13))
    old = Path(Attachments(tmp_path / "slack", clock).keep("old", "a", b"1"))
    assert old.exists()
    clock.advance(timedelta(days=2))
    Attachments(tmp_path / "slack", clock).keep("new", "a", b"1")
    assert not old.exists()


@pytest.mark.parametrize("files", [None, "x", [1, None], [{}], [{"name": 3, "url_private": 4, "size": "y"}]])
def test_files_that_are_none_do_no_harm(files: object) -> None:
    event = {"type": "message", "user": "U1", "ts": "1.0", "channel": "C1", "text": "x", "files": files}
    found = said(TEAM, event, bot_user=BOT_USER, bot_id=BOT_ID)
    assert found is not None
    assert all(one.why for one in found.files)
