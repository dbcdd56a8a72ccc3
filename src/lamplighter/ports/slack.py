"""Calls of Slack's Web API."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from lamplighter.domain.delivery.effects import Absent, CannotAsk
from lamplighter.ports.messenger import NotTaken

MENDS: Mapping[str, str] = {
    "invalid_auth": "The token is wrong or was revoked: install the app again with `lamp slack install`.",
    "token_revoked": "The token was revoked: install the app again with `lamp slack install`.",
    "account_inactive": "The app was removed from the workspace: install it again.",
    "not_in_channel": "Invite the app into the channel: `/invite @` and its name.",
    "channel_not_found": "Invite the app into the channel, and give the channel's id, such as C0123456789.",
    "missing_scope": "Bring the app's scopes up to `lamp slack manifest`, and install it again.",
    "is_archived": "The channel is archived: name another one.",
}


class Method(StrEnum):
    """The methods of the Web API that are called."""

    AUTH_TEST = "auth.test"
    OPEN_SOCKET = "apps.connections.open"
    UPDATE = "chat.update"
    DELETE = "chat.delete"
    WHISPER = "chat.postEphemeral"
    POST = "chat.postMessage"
    REPLIES = "conversations.replies"
    HISTORY = "conversations.history"
    OPEN_DM = "conversations.open"
    ADD_REACTION = "reactions.add"
    REMOVE_REACTION = "reactions.remove"
    USER = "users.info"
    START_STREAM = "chat.startStream"
    APPEND_STREAM = "chat.appendStream"
    STOP_STREAM = "chat.stopStream"
    SET_STATUS = "agents.sessions.setStatus"


class SlackRefused(NotTaken):
    """Slack refused the call, and nothing happened there; `error` is its name for the reason."""

    def __init__(self, method: str, error: str) -> None:
        super().__init__(f"Slack refused {method}: {error}.", hint=MENDS.get(error, "Slack's reference explains it."))
        self.error = error


class SlackLimited(SlackRefused):
    """Slack takes no more calls for a while."""

    def __init__(self, method: str, after: timedelta) -> None:
        super().__init__(method, f"too many calls, and again after {after.total_seconds():g} s")
        self.error = "ratelimited"
        self.retry_after = after


LEAVE = ""
"""What whoever hears a socket answers to leave it."""
Hear = Callable[[str], Awaitable[str | None]]
Dial = Callable[[str, Hear], Awaitable[None]]
"""Opens a socket and has each of its messages heard; an answer that is not None is sent.

Returns when the hearer leaves. Raises Unavailable when the socket ends otherwise."""


class SlackCalls(Protocol):
    def can_listen(self) -> bool:
        """Whether what Socket Mode needs is installed."""
        ...

    async def call(self, method: str, token: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer; that of `auth.test` has the app's scopes besides, with commas between them, if Slack told them.

        Raises SlackRefused, SlackLimited, and Unavailable if it is not known whether it was taken.
        """
        ...

    async def fetch(self, url: str, token: str, *, most: int, size: int = 0) -> bytes:
        """A file that was sent along, of at most so many bytes. The token is shown to Slack alone.

        `size` is how many it should have, 0 where that is not known: by it a web page that was sent is told from the
        one by which Slack asks to sign in. Raises NotTaken.
        """
        ...


# ── what stands in a channel ──────────────────────────────────────────────────────────────────────────────────────

AROUND = timedelta(minutes=2)
LOOKED_AT, PAGES = 200, 10
"""How many messages are asked for at once, and how often."""
NOT_ASKED = CannotAsk(at_most=2)
"""People in a channel cannot tell a repeat from another notice: better one that may be missing, and is in the inbox."""


async def find(
    calls: SlackCalls, token: str, channel: str, mark: tuple[str, str], since: datetime
) -> str | Absent | CannotAsk:
    """The id of the message with that key and value in its metadata, from a little before `since` on, newest first.

    Raises SlackRefused, SlackLimited, Unavailable.
    """
    args: dict[str, Any] = {
        "channel": channel, "oldest": f"{(since - AROUND).timestamp():.6f}", "limit": LOOKED_AT,
        "include_all_metadata": "true",
    }  # fmt: skip
    key, value = mark
    for _ in range(PAGES):
        said = await calls.call(Method.HISTORY, token, args)
        for one in said.get("messages", ()):
            if ((one.get("metadata") or {}).get("event_payload") or {}).get(key) == value:
                return str(one.get("ts", ""))
        cursor = (said.get("response_metadata") or {}).get("next_cursor")
        if not said.get("has_more") or not cursor:
            return NOT_ASKED if said.get("has_more") else Absent()
        args["cursor"] = cursor
    return NOT_ASKED
