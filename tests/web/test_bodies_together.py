"""Bodies that nobody has verified yet have a common room: whoever holds it by sending slowly gives way."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from served import Served
from starlette.types import Receive
from test_hooks import connect

from lamplighter.web.bodies import LARGEST, BodiesFull, Room

SLOW = 60
WITHIN = 120


class Slow:
    """A stranger that sends all of a large body but its last byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def begin(cls, city: Served, stack: AsyncExitStack, size: int) -> "Slow":
        host = city.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        stack.callback(writer.transport.abort)
        writer.write(b"POST /hooks/plain HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (host.encode(), size))
        writer.write(b"x" * (size - 1))
        await writer.drain()
        return cls(reader, writer)

    async def answer(self) -> bytes:
        async with asyncio.timeout(WITHIN):
            return await self.reader.readuntil(b"\r\n\r\n")


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> list[Room]:
    """Every room that is made, small enough for a test: eight of the largest bodies."""
    made: list[Room] = []

    def small() -> Room:
        made.append(Room(most=8 * LARGEST))
        return made[-1]

    monkeypatch.setattr("lamplighter.web.hooks.Room", small)
    return made


async def test_slow_strangers_hold_no_more_than_the_room_and_keep_no_sender_out(
    rooms: list[Room], city: Served
) -> None:
    token = await connect(city, "plain", provider="bearer")
    (room,) = rooms
    async with AsyncExitStack() as stack:
        slow = [await Slow.begin(city, stack, LARGEST) for _ in range(SLOW)]
        answers = await asyncio.gather(*(one.answer() for one in slow[: SLOW - 8]))
        assert all(b" 503 " in one.splitlines()[0] and b"retry-after: 1" in one.lower() for one in answers)
        assert room.held <= room.most
        whole = b'{"a": "' + b"x" * (LARGEST - 9) + b'"}'
        sent = await city.call("POST", "/hooks/plain", headers={"authorization": f"Bearer {token}"}, raw=whole)
        assert sent.status_code == 202, sent.text
        assert room.held <= room.most - LARGEST, "the answered one holds nothing any more"


async def test_what_has_come_whole_does_not_give_way() -> None:
    room = Room(most=10)
    async with room.body(_sent(b"x" * 8)) as first:
        with pytest.raises(BodiesFull):
            async with room.body(_sent(b"y" * 3)):
                pass
        assert (first, room.held) == (b"x" * 8, 8)
        async with room.body(_sent(b"yy")) as second:
            assert (second, room.held) == (b"yy", 10)
    assert room.held == 0


def _sent(body: bytes) -> Receive:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
