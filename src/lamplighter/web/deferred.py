"""A part of the server that is loaded at its first request: until then it costs neither time nor memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from starlette.types import Receive, Scope, Send


class Endpoint(Protocol):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """The endpoint serves within this context."""
        ...


class Deferred:
    """An ASGI application that `load` builds on a thread; requests wait meanwhile.

    Raises what `load` raises, or what the start of its endpoint raises.
    """

    def __init__(self, load: Callable[[], Endpoint]) -> None:
        self._load = load
        self._wanted = asyncio.Event()
        self._begun = asyncio.Event()
        self._ready: asyncio.Future[Endpoint] | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._ready = asyncio.get_running_loop().create_future()
        keeping = asyncio.create_task(self._keep(self._ready), name="deferred")
        self._begun.set()
        try:
            yield
        finally:
            keeping.cancel()
            self._ready.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ready is None:
            raise RuntimeError("it is asked only while it runs")
        self._wanted.set()
        endpoint = await asyncio.shield(self._ready)
        await endpoint(scope, receive, send)

    async def loaded(self) -> None:
        """Have it loaded, and wait for that; whether it could be is told to those who ask for something."""
        self._wanted.set()
        await self._begun.wait()
        if self._ready is not None:
            await asyncio.wait({self._ready})

    async def _keep(self, ready: "asyncio.Future[Endpoint]") -> None:
        """Load the endpoint when it is first wanted and keep its context open until cancelled, all in one task."""
        await self._wanted.wait()
        try:
            endpoint = await asyncio.to_thread(self._load)
            async with endpoint.running():
                ready.set_result(endpoint)
                await asyncio.Event().wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)  # raised in the requests that wait
