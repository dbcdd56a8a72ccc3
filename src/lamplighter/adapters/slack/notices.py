"""Notices as messages in Slack, found again by their metadata when an answer was lost."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.effects import Answer, Found
from lamplighter.domain.slack import messages
from lamplighter.ports.messenger import Message
from lamplighter.ports.slack import NOT_ASKED, Method, SlackCalls, SlackLimited, SlackRefused, find


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
            found = await find(self.calls, token, channel, ("notice", message.id), since)
        except SlackLimited:
            raise
        except SlackRefused:
            return NOT_ASKED
        return Found({"team": team, "channel": channel, "ts": found}) if isinstance(found, str) else found

    async def _channel(self, destination: Destination, token: str) -> str:
        if destination.kind == "slack_channel":
            return destination.channel
        said = await self.calls.call(Method.OPEN_DM, token, {"users": destination.user})
        return str(said["channel"]["id"])
