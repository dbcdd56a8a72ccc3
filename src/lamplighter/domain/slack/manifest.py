"""The manifest from which somebody makes an app of their own in Slack."""

from typing import Any

EVENTS_PATH, INTERACTIONS_PATH = "/slack/events", "/slack/interactions"
SCOPES = (
    "app_mentions:read", "assistant:write", "channels:history", "chat:write", "files:read", "groups:history",
    "im:history", "im:write", "reactions:read", "reactions:write", "users:read", "users:read.email",
)  # fmt: skip
EVENTS = ("agent_session_stopped", "app_mention", "message.channels", "message.groups", "message.im", "reaction_added")
AGENT = "assistant:write"
"""The scope of an app that Slack knows as an agent: it shows whether it works, with a Stop button."""
_OF_AGENTS = frozenset({AGENT, "agent_session_stopped"})
_DESCRIPTION = "Tells what needs you, and works in threads."


def lacking(scopes: str) -> list[str]:
    """What an app with these scopes, as Slack tells them, may not do of what a whole one may."""
    found = set(scopes.split(","))
    return [one for one in SCOPES if one not in found]


def manifest(name: str, public_url: str, *, plain: bool = False) -> dict[str, Any]:
    """With a public address Slack calls the city there; without one the city opens a socket to Slack.

    A plain app is not declared as an agent.
    """
    base, left = public_url.rstrip("/"), _OF_AGENTS if plain else frozenset[str]()
    events: dict[str, Any] = {"bot_events": [one for one in EVENTS if one not in left]}
    interactivity: dict[str, Any] = {"is_enabled": True}
    if base:
        events |= {"request_url": f"{base}{EVENTS_PATH}"}
        interactivity |= {"request_url": f"{base}{INTERACTIONS_PATH}"}
    return {
        "display_information": {"name": name, "description": _DESCRIPTION},
        "features": {
            **({} if plain else {"agent_view": {"agent_description": _DESCRIPTION}}),
            "app_home": {"home_tab_enabled": False, "messages_tab_enabled": True,
                         "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": name, "always_online": False},
        },
        "oauth_config": {"scopes": {"bot": [one for one in SCOPES if one not in left]}},
        "settings": {
            "event_subscriptions": events,
            "interactivity": interactivity,
            "org_deploy_enabled": False,
            "socket_mode_enabled": not base,
            "token_rotation_enabled": False,
        },
    }  # fmt: skip
