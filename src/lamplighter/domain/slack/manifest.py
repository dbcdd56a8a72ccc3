"""The manifest from which somebody makes an app of their own in Slack."""

from typing import Any

EVENTS_PATH, INTERACTIONS_PATH = "/slack/events", "/slack/interactions"
SCOPES = (
    "app_mentions:read", "channels:history", "chat:write", "files:read", "groups:history", "im:history", "im:write",
    "reactions:read", "reactions:write", "users:read", "users:read.email",
)  # fmt: skip
EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "reaction_added")


def manifest(name: str, public_url: str) -> dict[str, Any]:
    """With a public address Slack calls the city there; without one the city opens a socket to Slack."""
    base = public_url.rstrip("/")
    events: dict[str, Any] = {"bot_events": list(EVENTS)}
    interactivity: dict[str, Any] = {"is_enabled": True}
    if base:
        events |= {"request_url": f"{base}{EVENTS_PATH}"}
        interactivity |= {"request_url": f"{base}{INTERACTIONS_PATH}"}
    return {
        "display_information": {"name": name, "description": "Tells what needs you, and works in threads."},
        "features": {
            "app_home": {"home_tab_enabled": False, "messages_tab_enabled": True,
                         "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": name, "always_online": False},
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": events,
            "interactivity": interactivity,
            "org_deploy_enabled": False,
            "socket_mode_enabled": not base,
            "token_rotation_enabled": False,
        },
    }  # fmt: skip
