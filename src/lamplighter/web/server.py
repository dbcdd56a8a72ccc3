"""The HTTP server: its routes, the order of its middleware, and the socket that it binds before it serves."""

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
"""Returns why the city cannot serve; None if it can."""


@dataclass(frozen=True)
class Part:
    """A separate application at a path, with the context that must be open while it serves."""

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
    """The addresses under which the city answers."""


def build(surface: Surface) -> Starlette:
    """Every request must name an address of the city, and all but those of the two health paths need a token."""

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
    """Serves an application on one address until `stop`. It leaves signals to the process."""

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
        """`listener` is a socket that is bound already. `most` limits the connections; by default descriptors do."""
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
        """How many connections are open now."""
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
        """Make `serve` return once requests under way are answered, or after the graceful shutdown time."""
        self._server.stop()
