"""What Slack sends, on this machine: events, presses of buttons, and the headers that prove them."""

import hmac
import json
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

TEAM, APP, BOT_USER, BOT_ID = "T0CITY", "A0LAMP", "U0LAMP", "B0LAMP"
BOT_TOKEN, APP_TOKEN = "xoxb-1-secret-of-the-bot", "xapp-1-secret-of-the-app"
SCOPES = (
    "app_mentions:read", "assistant:write", "channels:history", "chat:write", "files:read", "groups:history",
    "im:history", "im:write", "reactions:read", "reactions:write", "users:read", "users:read.email",
)  # fmt: skip
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105


def envelope(event: Mapping[str, Any], event_id: str, **keys: Any) -> dict[str, Any]:
    """An event as the Events API delivers it."""
    return {
        "token": "unused", "team_id": TEAM, "api_app_id": APP, "type": "event_callback", "event_id": event_id,
        "event_time": int(time.time()), "event": dict(event), "authorizations": [
            {"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False},
        ], **keys,
    }  # fmt: skip


def press(action: Mapping[str, Any], message: Mapping[str, Any], channel: str, user: str) -> dict[str, Any]:
    """The press of a button, as interactivity delivers it."""
    return {
        "type": "block_actions", "team": {"id": TEAM, "domain": "city"}, "api_app_id": APP,
        "user": {"id": user, "username": user.lower(), "team_id": TEAM},
        "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel},
        "channel": {"id": channel, "name": "ops"}, "message": dict(message), "trigger_id": "1.2.3",
        "response_url": "https://hooks.slack.invalid/actions/1", "actions": [dict(action)],
    }  # fmt: skip


def signed(body: bytes, *, secret: str = SIGNING_SECRET, at: float | None = None, form: bool = False) -> dict[str, str]:
    """The headers with which Slack proves a request."""
    stamp = str(int(time.time() if at is None else at))
    mac = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, sha256).hexdigest()
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    return {"content-type": kind, "x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={mac}"}


def as_form(payload: Mapping[str, Any]) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()
