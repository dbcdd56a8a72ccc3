"""Servers whose answer never ends, a byte at a time: the limit of a client's single reads is never reached."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lamplighter.adapters.github.api import GitHub
from lamplighter.adapters.slack.web_api import SlackWebApi
from lamplighter.kit.errors import Unavailable

WITHIN_S = 0.3
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"


async def github(address: str) -> object:
    return await GitHub(Path("/"), os.environ, within=WITHIN_S).fetch(f"{address}/repos/a/b/events", "t", "")


async def slack(address: str) -> object:
    return await SlackWebApi(f"{address}/", seconds=WITHIN_S).call("auth.test", "t", {})


@asynccontextmanager
async def dripping() -> AsyncIterator[str]:
    left = asyncio.Event()

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(HEAD)
            while not left.is_set():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(WITHIN_S / 10)  # it is what this server does
        except OSError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        left.set()


@pytest.mark.parametrize("ask", [github, slack])
async def test_an_answer_that_drips_ends_as_unavailable(ask: Callable[[str], Awaitable[object]]) -> None:
    async with dripping() as address:
        with pytest.raises(Unavailable, match="gave no answer"):
            await asyncio.wait_for(ask(address), 60)
