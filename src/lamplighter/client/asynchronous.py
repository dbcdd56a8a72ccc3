"""The client that is awaited: as `Client`, for programs with an event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self, TypeVar

import httpx2

from lamplighter.client.calls import Came, Pause, Retries, Send, Steps
from lamplighter.client.following import MEDIA_TYPE, Following
from lamplighter.client.routes import Asked, asked
from lamplighter.client.transport import failure, reply_of, request_of, stream_of, way_to
from lamplighter.services.operation import Operation
from lamplighter.services.table import find

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


class AsyncClient:
    """See `Client`; the methods are the same."""

    def __init__(self, url: str, token: str, *, retries: Retries = Retries()) -> None:  # noqa: B008  it never changes
        """Raises UsageError for an address or a token that cannot be one."""
        way = way_to(url, token, retries)
        self._core = way.core
        self._http = httpx2.AsyncClient(**way.options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    @property
    def url(self) -> str:
        return self._core.url

    async def do(self, operation: Operation[Q, A], ask: Q, *, key: str | None = None) -> A:
        return await self._driven(self._core.call(operation, ask, key))

    async def call(self, name: str, /, **fields: Any) -> Any:
        operation = find(name)
        return await self.do(operation, operation.request(**fields))

    async def each(self, operation: Operation[Q, list[A]], ask: Q) -> AsyncIterator[A]:
        page: Asked | None = asked(operation, ask)
        while page is not None:
            found, page = await self._driven(self._core.page(operation, page))
            for one in found:
                yield one

    async def follow(self, operation: Operation[Q, A], ask: Q) -> AsyncIterator[A]:
        stream = Following(self._core, operation, ask)
        while not stream.is_over():
            one = stream.asked()
            try:
                async with self._http.stream(**stream_of(one)) as answer:
                    if answer.headers.get("content-type", "").startswith(MEDIA_TYPE):
                        async for chunk in answer.aiter_bytes():
                            for item in stream.take(chunk):
                                yield item
                            if stream.is_over():
                                return
                        pause = stream.cut()
                    else:
                        await answer.aread()
                        pause = stream.refused(reply_of(answer))
            except httpx2.HTTPError as error:
                pause = stream.cut(failure(error, one, self.url))
            await asyncio.sleep(pause)

    async def _driven(self, steps: Steps[R]) -> R:
        came: Came = None
        step = _next(steps, came)
        while not isinstance(step, _Done):
            step = _next(steps, await self._carried_out(step))
        found: R = step.value
        return found

    async def _carried_out(self, step: Send | Pause) -> Came:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return reply_of(await self._http.request(**request_of(step.asked)))
        except httpx2.HTTPError as error:
            return failure(error, step.asked, self.url)


class _Done:
    def __init__(self, value: Any) -> None:
        self.value = value


def _next(steps: Steps[Any], came: Came) -> Send | Pause | _Done:
    try:
        return steps.send(came)
    except StopIteration as done:
        return _Done(done.value)
