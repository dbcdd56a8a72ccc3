"""Streams of operations as server-sent events: a line of life now and then, and the end when the server stops."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse

from lamplighter.kit.errors import LampError
from lamplighter.kit.shapes import to_json
from lamplighter.services.operation import Page
from lamplighter.web.errors import told
from lamplighter.web.held import called_off

MEDIA_TYPE = "text/event-stream"
ALIVE_S = 15.0
"""A comment is sent after so many seconds without an item, so that a client and what lies between see that it lives."""
FIRST_S = 0.25
"""How many seconds the answer waits for the first item: an error within them still has its status."""


Hold = Callable[[AsyncGenerator[str, None]], AsyncGenerator[str, None]]


def _as_it_is(lines: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    return lines


async def follow(
    items: AsyncIterator[Any], page: Page | None, stopping: asyncio.Event, count: Counter[str], hold: Hold = _as_it_is
) -> Response:
    """`count` is told of the stream while it is open, and `hold` may end it early.

    Raises what the stream raises before its first item.
    """
    first = asyncio.ensure_future(_next(items))
    await asyncio.wait({first}, timeout=FIRST_S)
    if first.done():
        first.result()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _counted(hold(_lines(items, first, page, stopping)), count), media_type=MEDIA_TYPE, headers=headers
    )


async def _counted(lines: AsyncGenerator[str, None], count: Counter[str]) -> AsyncIterator[str]:
    count[MEDIA_TYPE] += 1
    try:
        async with aclosing(lines):
            async for line in lines:
                yield line
    finally:
        count[MEDIA_TYPE] -= 1


class _Over(Exception):
    pass


async def _next(items: AsyncIterator[Any]) -> Any:
    try:
        return await anext(items)
    except StopAsyncIteration:
        return _Over


async def _lines(
    items: Any, first: "asyncio.Future[Any]", page: Page | None, stopping: asyncio.Event
) -> AsyncGenerator[str, None]:
    """It ends with `event: end` where the stream itself ends; a client that sees none asks again."""
    over = asyncio.ensure_future(stopping.wait())
    coming = first
    try:
        while not stopping.is_set():
            await asyncio.wait({coming, over}, timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                yield ": alive\n\n"
                continue
            found = coming.result()
            if found is _Over:
                yield "event: end\ndata: {}\n\n"
                return
            yield _event(to_json(found), page)
            coming = asyncio.ensure_future(_next(items))
    except LampError as error:
        yield f"event: problem\ndata: {json.dumps(told(error))}\n\n"
    finally:
        try:
            await called_off(over, coming)
        finally:
            await items.aclose()


def _event(item: Any, page: Page | None) -> str:
    number = f"id: {item[page.key]}\n" if page is not None else ""
    return f"{number}data: {json.dumps(item, ensure_ascii=False)}\n\n"
