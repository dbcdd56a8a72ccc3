"""Sends notices to the destinations of a city."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from lamplighter.domain.city.sections import Destination
from lamplighter.domain.delivery.effects import Answer
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record


@record
class Message:
    """One notice as it is sent; `id` is the same at every try. `what` is its occasion, such as `opened`.

    `link` is the page of what it is about, where the city has a public address.
    """

    id: str
    what: str
    at: datetime
    city: str
    body: Mapping[str, Any]
    link: str = ""


class NotTaken(Conflict):
    """The destination refused the message, and nothing happened there."""

    retry_after: timedelta | None = None
    """How long it wants to be left alone, if it said so."""


class Gone(NotTaken):
    """The destination said that it takes no messages any more, for good."""


class Messenger(Protocol):
    async def send(self, destination: Destination, message: Message) -> Mapping[str, Any]:
        """Send it and return what is to be kept of the answer.

        Raises NotTaken if the destination refused it, Gone if for good, Unavailable if it may have arrived.
        """
        ...

    async def look(self, destination: Destination, message: Message, since: datetime) -> Answer:
        """Ask the destination whether the message arrived, first sent at `since`. Raises NotTaken, Unavailable."""
        ...
