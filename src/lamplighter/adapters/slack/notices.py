"""Notices as messages in Slack, found again by their metadata when an answer was lost."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.effects import Absent, Answer, CannotAsk, Found
from lamplighter.domain.slack import messages
from lamplighter.ports.messenger import Message
from lamplighter.ports.slack import Method, SlackCalls, SlackLimited, SlackRefused

AROUND = timedelta(minutes=2)
LOOKED_AT, PAGES = 200, 10
"""How many messages are asked for at once, and how often."""
NOT_ASKED = CannotAsk(at_most=2)
"""People in a channel cannot tell a repeat from another notice: better one that may be missing, and is in the inbox."""


@dataclass(frozen=True)
class SlackNotices:
    """`workspace` gives a workspace's id, its token, and whether presses of buttons reach the city."""

    calls: SlackCalls
    workspace: Callable[[str], Awaitable[tuple[str, str, bool]]]
    public_url: Callable[[], str]

    async def send(self, destination: Destination, message: Message) -> Mapping[str, Any]:
        """Raises NotTaken, SlackRefused, SlackLimited, Unavailable."""
        team, token, hears = await self.workspace(destination.team)
        channel = await self._channel(destination, token)
        told = messages.notice(
            message.body, notice_id=message.id, city=message.city, link=self.public_url(), buttons=hears
        )
        said = await self.calls.call(Method.POST, token, {"channel": channel, **told})
        return {"team": team, "channel": said.get("channel", channel), "ts": said.get("ts", "")}

    async def look(self, destination: Destination, message: Message, since: datetime) -> Answer:
        """A look at the messages of the channel from a little before the first try on, newest first.

        Raises SlackLimited.
        """
        team, token, _ = await self.workspace(destination.team)
        try:
            channel = await self._channel(destination, token)
            found = await self._found(channel, token, message.id, since)
        except SlackLimited:
            raise
        except SlackRefused:
            return NOT_ASKED
        return Found({"team": team, "channel": channel, "ts": found.ts}) if isinstance(found, _Seen) else found

    async def _found(self, channel: str, token: str, notice: str, since: datetime) -> "_Seen | Absent | CannotAsk":
        args = {
            "channel": channel, "oldest": f"{(since - AROUND).timestamp():.6f}", "limit": LOOKED_AT,
            "include_all_metadata": "true",
        }  # fmt: skip
        for _ in range(PAGES):
            said = await self.calls.call(Method.HISTORY, token, args)
            for one in said.get("messages", ()):
                payload = (one.get("metadata") or {}).get("event_payload") or {}
                if payload.get("notice") == notice:
                    return _Seen(str(one.get("ts", "")))
            cursor = (said.get("response_metadata") or {}).get("next_cursor")
            if not said.get("has_more") or not cursor:
                return NOT_ASKED if said.get("has_more") else Absent()
            args["cursor"] = cursor
        return NOT_ASKED

    async def _channel(self, destination: Destination, token: str) -> str:
        if destination.kind == "slack_channel":
            return destination.channel
        said = await self.calls.call(Method.OPEN_DM, token, {"users": destination.user})
        return str(said["channel"]["id"])


@dataclass(frozen=True)
class _Seen:
    ts: str
