"""Reads request bodies: bounded in size, each and those of strangers together, and only JSON objects."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from lamplighter.kit import json_text
from lamplighter.kit.errors import Unavailable, UsageError
from lamplighter.kit.limits import TimeLimit

LARGEST = 1 << 20
LARGEST_TOGETHER = 16 << 20
LONGEST_S = 120
"""How long a body that holds room may take to come."""


class BodiesFull(Unavailable):
    def __init__(self) -> None:
        super().__init__("Too many bodies are on their way here at once.", hint="Send it again later.")


async def json_object(request: Request) -> dict[str, Any]:
    """The body's object; no body counts as an empty one.

    Raises UsageError for a body that is not a JSON object, 413 for one that is too large.
    """
    body = await bounded(request)
    if not body:
        return {}
    try:
        found = json_text.parse(body.decode("utf-8"))
    except ValueError as error:
        raise UsageError(f"The body is not JSON that can be used: {error}.", hint="Send a JSON object.") from error
    if not isinstance(found, dict):
        raise UsageError("The body is not a JSON object.", hint='Send one such as {"outcome": "succeeded"}.')
    if not all(map(can_be_kept, _texts(found))):
        raise UsageError("A text in the body has a character that no text has.", hint="Send Unicode without NUL.")
    return found


def can_be_kept(text: str) -> bool:
    """No database keeps a NUL, or half of a pair of surrogates."""
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, one in value.items():
                yield key
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)


async def bounded(request: Request, most: int = LARGEST) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"a body has at most {most} bytes")


@dataclass(eq=False)
class _Reading:
    limit: TimeLimit
    size: int = 0
    complete: bool = False


class _Piece(NamedTuple):
    chunk: bytes
    more: bool


async def _next(receive: Receive) -> _Piece:
    """Raises ClientDisconnect."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return _Piece(message.get("body", b""), message.get("more_body", False))


@dataclass
class Room:
    """The room that the bodies of strangers have together, from their first byte until the request is answered.

    Where it is full, the body that has been on its way longest gives way: an honest sender has sent all of its body in
    a moment, and one that holds room by sending slowly must not keep others out.
    """

    most: int = LARGEST_TOGETHER
    held: int = 0
    _readings: dict[_Reading, None] = field(default_factory=dict)

    @asynccontextmanager
    async def body(self, receive: Receive) -> AsyncIterator[bytes]:
        """The body, which counts until the block is left. Raises BodiesFull, ClientDisconnect, 413."""
        first = await _next(receive)  # it holds nothing until then, and the connection's own limits bound its time
        mine = _Reading(TimeLimit(LONGEST_S), complete=not first.more)
        self._readings[mine] = None
        try:
            if mine.complete:
                found = self._added(mine, b"", first.chunk)
            else:
                try:
                    async with mine.limit:
                        found = await self._read(receive, mine, first)
                except TimeoutError:
                    raise BodiesFull from None
                mine.complete = True
            yield found
        finally:
            self._forget(mine)

    async def _read(self, receive: Receive, mine: _Reading, piece: _Piece) -> bytes:
        body = bytearray(self._added(mine, b"", piece.chunk))
        while piece.more:
            piece = await _next(receive)
            body += self._added(mine, body, piece.chunk)
        return bytes(body)

    def _added(self, mine: _Reading, body: bytes | bytearray, chunk: bytes) -> bytes:
        if len(body) + len(chunk) > LARGEST:
            raise _too_large(LARGEST)
        self._take(mine, len(chunk))
        return chunk

    def _take(self, mine: _Reading, size: int) -> None:
        while self.held + size > self.most:
            oldest = next((one for one in self._readings if not one.complete), mine)
            if oldest is mine:
                raise BodiesFull
            oldest.limit.end()
            self._forget(oldest)
        mine.size += size
        self.held += size

    def _forget(self, one: _Reading) -> None:
        if one in self._readings:
            del self._readings[one]
            self.held -= one.size
