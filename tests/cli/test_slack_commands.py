"""Workspaces of Slack by the program itself, with a Slack on this machine: installed, listed, tried, removed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamplighter.testing.slack_server import Refused, SlackServer, slack_server
from lamplighter.testing.slack_shapes import APP_TOKEN, BOT_TOKEN, BOT_USER, SIGNING_SECRET, TEAM

TOKENS = f"SLACK_BOT_TOKEN={BOT_TOKEN}\nSLACK_SIGNING_SECRET={SIGNING_SECRET}\nSLACK_APP_TOKEN={APP_TOKEN}\n"
SECRETS = (BOT_TOKEN, SIGNING_SECRET, APP_TOKEN)


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with slack_server() as found:
        yield found


class Lamp:
    def __init__(self, root: Path, slack: SlackServer) -> None:
        self.root = root
        self.env = {**os.environ, "HOME": str(root), "LAMP_SLACK_API_URL": slack.api}
        self.said = ""

    def __call__(self, *words: str, given: str = "", ends: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "lamplighter", "--city", str(self.root / "town"), *words],
            input=given, env=self.env, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        assert done.returncode == ends, done.stdout + done.stderr
        return done.stdout if not ends else done.stderr

    def json(self, *words: str, **keys: Any) -> Any:
        return json.loads(self(*words, "--json", **keys))


@pytest.fixture
def lamp(tmp_path: Path, slack: SlackServer) -> Lamp:
    found = Lamp(tmp_path, slack)
    found("init", str(tmp_path / "town"))
    return found


def test_an_app_is_installed_listed_tried_and_removed_and_its_secrets_are_shown_nowhere(
    lamp: Lamp, slack: SlackServer
) -> None:
    done = lamp.json("slack", "install", "--preset", "claude", given=TOKENS)
    assert (done["team"], done["bot_user"], done["ways"]) == (TEAM, BOT_USER, ["events", "socket"])
    [listed] = lamp.json("slack", "list")
    assert (listed["team"], listed["preset"], listed["people"]) == (TEAM, "claude", {})
    assert f"Slack knows the app in City ({TEAM})" in lamp("slack", "test", TEAM)
    assert (listed["lacks"], listed["unstreamed"]) == ([], None)
    slack.scopes = ("chat:write", "users:read")
    assert "lacks scopes of `lamp slack manifest`: app_mentions:read, assistant:write" in lamp("slack", "test", TEAM)
    [listed] = lamp.json("slack", "list")
    assert listed["lacks"][:2] == ["app_mentions:read", "assistant:write"]
    assert "links nobody" in lamp("slack", "who", "ABCDE12345", ends=4)
    slack.trouble = lambda _method, _before: Refused("token_revoked")
    assert "install the app again" in lamp("slack", "test", TEAM, ends=4)
    assert "slack.installed" in lamp("event", "list", "--json")
    lamp("audit", "list", "--json")
    kept = b"".join(one.read_bytes() for one in (lamp.root / "town").rglob("*") if one.is_file())
    for secret in SECRETS:
        assert secret not in lamp.said
        assert secret.encode() not in kept
    lamp("slack", "remove", TEAM)
    assert "is not installed" in lamp("slack", "test", TEAM, ends=3)


def test_what_works_in_its_threads_is_said_where_it_is_installed(lamp: Lamp) -> None:
    assert "There is no rig `nowhere`" in lamp(
        "slack", "install", "--preset", "claude", "--rig", "nowhere", given=TOKENS, ends=2
    )
    lost = ("slack", "install", "--preset", "claude", "--configuration", "nowhere")
    assert "nowhere" in lamp(*lost, given=TOKENS, ends=2)
    lamp("slack", "install", "--preset", "claude", "--mode", "plan", given=TOKENS)
    [listed] = lamp.json("slack", "list")
    assert (listed["mode"], listed["rig"]) == ("plan", None)


def test_what_slack_refuses_is_not_installed(lamp: Lamp, slack: SlackServer) -> None:
    assert "invalid_auth" in lamp("slack", "install", given="SLACK_BOT_TOKEN=xoxb-1-somebody-elses", ends=4)
    assert "begins with `xoxb-`" in lamp("slack", "install", given="SLACK_BOT_TOKEN=nonsense", ends=2)
    assert lamp.json("slack", "list") == []
    assert slack.of("auth.test") == []


def test_the_manifest_is_for_the_public_address_or_else_for_a_socket(lamp: Lamp) -> None:
    made = json.loads(lamp("slack", "manifest"))
    assert made["settings"]["socket_mode_enabled"] is True
    assert "request_url" not in made["settings"]["event_subscriptions"]
    lamp.env["LAMP_API_PUBLIC_URL"] = "https://lamp.example.org/"
    made = json.loads(lamp("slack", "manifest"))
    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["event_subscriptions"]["request_url"] == "https://lamp.example.org/slack/events"
    assert made["settings"]["interactivity"]["request_url"] == "https://lamp.example.org/slack/interactions"
    assert "chat:write" in made["oauth_config"]["scopes"]["bot"]
    assert "agent_view" in made["features"]
    assert "agent_view" not in json.loads(lamp("slack", "manifest", "--plain"))["features"]
