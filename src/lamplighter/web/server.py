"""The HTTP server: routes, the order of middleware, and a socket that is bound before anyone is told its address."""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.web.auth import Authenticate, Tokens
from lamplighter.web.errors import on_bug, on_client_left, on_http_error, on_lamp_error, problem
from lamplighter.web.hosts import OwnSites, Reached
from lamplighter.web.listening import bound, url_of
from lamplighter.web.protocol import Limits
from lamplighter.web.quiet import QuietServer

OPEN_PATHS = frozenset({"/healthz", "/readyz"})

LIMITS = Limits()

Ready = Callable[[], Awaitable[str | None]]
"""Why the city cannot serve; None when it can."""


@dataclass(frozen=True)
class Part:
    """An application of its own below a path, with what has to be up while it serves."""

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Surface:
    tokens: Tokens
    ready: Ready
    routes: Sequence[Route] = ()
    parts: Sequence[Part] = field(default=())
    reached: Callable[[], Reached] = Reached
    """Under which addresses the city answers."""


def build(surface: Surface) -> Starlette:
    """Everything but the two health paths asks for a token first, and everything for an address of the city's own."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in surface.parts:
                await stack.enter_async_context(part.running())
            yield

    handlers: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
        LampError: on_lamp_error,
        HTTPException: on_http_error,
        ClientDisconnect: on_client_left,
        Exception: on_bug,
    }
    return Starlette(
        routes=[*_health(surface.ready), *surface.routes, *(Route(part.path, part.app) for part in surface.parts)],
        middleware=[
            Middleware(OwnSites, reached=surface.reached),
            Middleware(Authenticate, tokens=surface.tokens, open_paths=OPEN_PATHS),
        ],
        exception_handlers=dict(handlers),
        lifespan=lifespan,
    )


def _health(ready: Ready) -> list[Route]:
    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        why = await ready()
        return problem(Unavailable(why)) if why else JSONResponse({"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class WebServer:
    """Serves an application on one address until it is told to stop. Signals are the process's own business."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        listener: socket.socket | None = None,
        limits: Limits = LIMITS,
        most: int | None = None,
    ) -> None:
        """On `listener`, where one is bound already. `most` connections; as descriptors allow when left out."""
        self._socket = listener or bound(host, port)
        config = uvicorn.Config(
            app, lifespan="on", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5,
            http="httptools", ws="none", timeout_keep_alive=limits.idle_seconds,
        )  # fmt: skip
        self._server = QuietServer(config, limits, most)

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._server.connections)

    @property
    def url(self) -> str:
        return url_of(self._socket)

    async def serve(self) -> None:
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Requests under way are answered; `serve` returns after them."""
        self._server.stop()
