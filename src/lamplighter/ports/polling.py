"""Asks a provider what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Fetched:
    """An answer; header names are in small letters. `items` is empty unless the status is 200."""

    status: int
    headers: Mapping[str, str]
    items: Sequence[Any] = ()


class PollSource(Protocol):
    async def fetch(self, address: str, token: str, etag: str) -> Fetched:
        """Ask for a page. Raises Unavailable where no answer came that can be read. Redirects are not followed."""
        ...

    async def default_token(self, url: str) -> str:
        """The token of whoever runs this city, for the API at `url`. Raises Unavailable where there is none."""
        ...
