"""What a stream shows: entries of a plan for what is done, and text in which nothing can mention anybody."""

import json
from datetime import UTC, datetime

import pytest

from lamplighter.domain.slack import stream
from lamplighter.domain.slack.events import Stop, stopped
from lamplighter.domain.slack.manifest import SCOPES, lacking, manifest
from lamplighter.domain.slack.markdown import harmless
from lamplighter.domain.slack.stream import Entry, Mode, Status, Stream

JOINER = "\N{WORD JOINER}"


def done(*steps: str) -> list[tuple[str, str]]:
    """The entries after these steps: `+id name` begins a tool, `-id` ends one well, `!id` badly."""
    entries: tuple[Entry, ...] = ()
    for one in steps:
        if one.startswith("+"):
            tool, _, name = one[1:].partition(" ")
            entries = stream.begun(entries, tool, name)
        else:
            entries = stream.ended(entries, one[1:], ok=one.startswith("-"))
    return [(one.title, one.status.value) for one in entries]


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([], []),
        (["+1 Read", "+2 Grep", "-1", "-2"], []),
        (["+1 Bash"], [("Runs commands", "in_progress")]),
        (["+1 Bash", "-1"], [("Runs commands", "complete")]),
        (["+1 Bash", "!1"], [("Runs commands", "error")]),
        (["+1 Bash", "!1", "+2 Bash", "-2"], [("Runs commands (2)", "complete")]),
        (["+1 Bash", "+2 Bash", "!2"], [("Runs commands (2)", "in_progress")]),
        (["+1 Bash", "-1", "+2 Edit", "+3 Bash"],
         [("Runs commands", "complete"), ("Changes files", "in_progress"), ("Runs commands", "in_progress")]),
        (["-9", "+1 WebSearch", "-9"], [("Asks the web", "in_progress")]),
    ],
)  # fmt: skip
def test_what_is_done_is_shown_by_its_kind(steps: list[str], shown: list[tuple[str, str]]) -> None:
    assert done(*steps) == shown


def test_a_plan_stays_within_what_slack_shows() -> None:
    steps = [f"+{number} {'Bash' if number % 2 else 'Edit'}" for number in range(200)]
    shown = done(*steps, *(f"-{number}" for number in range(200)))
    assert len(shown) == stream.MOST_ENTRIES
    assert {status for _, status in shown} == {"complete"}
    assert sum(int(title.partition("(")[2].rstrip(")") or 1) for title, _ in shown) == 200


def test_only_what_has_changed_is_sent() -> None:
    before = Stream(Mode.OPEN, "m", entries=(Entry("plans", going=("1",)), Entry("verifies")))
    after = (Entry("plans"), Entry("verifies"), Entry("runs commands", going=("2",)))
    assert [(one["id"], one["status"]) for one in stream.added(before, after, "")] == [
        ("m-0", "complete"),
        ("m-2", "in_progress"),
    ]
    closed = stream.closing(Stream(Mode.OPEN, "m", entries=after), "Failed", ok=False)
    assert [(one.get("id"), one.get("status")) for one in closed] == [(None, None), ("m-2", "error"), ("m", "error")]


def test_what_is_kept_is_read_again() -> None:
    whole = Stream(Mode.UNSURE, "m", datetime(2026, 11, 19, tzinfo=UTC), (Entry("plans", 2, ("1", "2"), ok=False),))
    assert stream.read(stream.written(whole)) == whole
    assert (stream.read(""), stream.written(Stream())) == (Stream(), "")
    assert json.loads(stream.EDITED)["mode"] == "edited"
    assert whole.entries[0].status is Status.GOING


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("# Done\n- **two** lamps < three", "# Done\n- **two** lamps < three"),
        ("<!channel> <@U1> <#C1>", f"<{JOINER}!channel> <{JOINER}@U1> <{JOINER}#C1>"),
        (
            "`<!here>` <https://evil.example|bank.example>",
            f"`<{JOINER}!here>` <{JOINER}https://evil.example|bank.example>",
        ),
        ("[a page](https://a.example/)", "[a page](https://a.example/)"),
        ("[bank.example](https://evil.example/)", "bank.example (https://evil.example/)"),
        ("`[bank.example](https://evil.example/)`", "`[bank.example](https://evil.example/)`"),
        ("| a | b |\n|---|---|\n| <b> | 2 |", "| a | b |\n|---|---|\n| <b> | 2 |"),
    ],
)
def test_markdown_of_a_stream_can_mention_nobody(text: str, there: str) -> None:
    assert harmless(text) == there


def test_slack_s_own_stop_button_is_understood() -> None:
    event = {"type": "agent_session_stopped", "channel": "C1", "user": "U1", "thread_ts": "1.0", "event_ts": "2.0",
             "streaming_message_ts": []}  # fmt: skip
    assert stopped("T1", event, bot_user="U0") == Stop("T1", "U1", "C1", "1.0", "2.0")
    assert stopped("T1", event | {"thread_ts": None}, bot_user="U0") is None


def test_a_plain_app_is_no_agent() -> None:
    whole, plain = manifest("Lamp", ""), manifest("Lamp", "", plain=True)
    assert whole["features"]["agent_view"]["agent_description"]
    assert "agent_view" not in plain["features"]
    assert set(whole["oauth_config"]["scopes"]["bot"]) - set(plain["oauth_config"]["scopes"]["bot"]) == {
        "assistant:write"
    }
    events = [one["settings"]["event_subscriptions"]["bot_events"] for one in (whole, plain)]
    assert set(events[0]) - set(events[1]) == {"agent_session_stopped"}
    assert lacking(",".join(SCOPES)) == []
    assert lacking("chat:write,users:read")[:2] == ["app_mentions:read", "assistant:write"]
