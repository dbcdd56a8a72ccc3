"""The HTTP server: its routes, the order of its middleware, and the socket that it binds before it serves."""

import contextlib
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.web import description
from lamplighter.web.auth import SIGN_IN, Authenticate, BrowserAuth, Policy, Stored, Tokens
from lamplighter.web.errors import on_bug, on_client_left, on_http_error, on_lamp_error, problem
from lamplighter.web.hooks import Door, Hooks
from lamplighter.web.hosts import OwnSites, Reached, is_secure
from lamplighter.web.listening import bound, url_of
from lamplighter.web.prefix import Prefixed
from lamplighter.web.protocol import Limits
from lamplighter.web.quiet import QuietServer
from lamplighter.web.request_ids import RequestIds

OPEN_PATHS = frozenset({"/healthz", "/readyz"}) | description.OPEN
STREAM_PATH = "/api/v1/stream"
STATIC = "console"
"""The first word of the paths of the console's own files, which hold nothing of the city."""
SLACK = "slack"
"""The first word of the paths at which Slack calls the city, as it proves by its signature."""
PAGES = frozenset({
    "", "runs", "automations", "agents", "bulk", "calendar", "cost", "events", "beads", "deliveries", "nodes", "search",
    "settings", "inbox", "sign-out",
})  # fmt: skip
"""The first words of the paths of the console's pages."""

LIMITS = Limits()
LONGEST_MESSAGE = 64 << 10
"""Bytes of a message that comes over a web socket."""
_TERMINAL = re.compile(r"/(?:.+/)?agents/.+/terminal")

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
    routes: Sequence[Route | WebSocketRoute] = ()
    door: Door | None = None
    """Where deliveries come in: each proves by its signature whose it is."""
    parts: Sequence[Part] = field(default=())
    console: Part | None = None
    """The pages, at the paths that PAGES names."""
    browsers: BrowserAuth | None = None
    reached: Callable[[], Reached] = Reached
    """The addresses under which the city answers."""
    stored: Stored | None = None
    """Asks the store about tokens that `tokens` does not know."""
    tools_loaded: Callable[[], Awaitable[None]] | None = None
    """Returns once the tools of agents are served without any delay."""


def build(surface: Surface) -> Starlette:
    """Every request must name an address of the city; `policy_of` says what else each path asks for."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in (*surface.parts, *([surface.console] if surface.console else [])):
                await stack.enter_async_context(part.running())
            yield

    handlers: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
        LampError: on_lamp_error,
        HTTPException: on_http_error,
        ClientDisconnect: on_client_left,
        Exception: on_bug,
    }
    app = Starlette(
        routes=[
            *_health(surface.ready),
            *description.routes(),
            *surface.routes,
            *(Route(part.path, part.app) for part in surface.parts),
            *_pages(surface.console),
        ],
        middleware=[
            *([Middleware(Hooks, door=surface.door, reached=surface.reached)] if surface.door else []),
            Middleware(RequestIds),
            Middleware(Prefixed, reached=surface.reached),
            Middleware(OwnSites, reached=surface.reached),
            Middleware(
                Authenticate,
                tokens=surface.tokens,
                policy=policy_of,
                browsers=surface.browsers,
                is_secure=lambda host: is_secure(host, surface.reached()),
                stored=surface.stored,
            ),
        ],
        exception_handlers=dict(handlers),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a path that is not there is told so
    return app


def is_terminal(path: str) -> bool:
    """Whether it is the path of an agent's terminal, the only one at which there is a web socket."""
    return _TERMINAL.fullmatch(path) is not None


def sockets_are_there() -> bool:
    """Whether the extra `terminal` is installed."""
    return find_spec("wsproto") is not None


def _nowhere(_path: str) -> bool:
    return False


def policy_of(path: str) -> Policy:
    """What a request for this path must show; a path that is not named here needs a token, whether it exists or not."""
    first = path.split("/", 2)[1] if path.startswith("/") else path
    if path in OPEN_PATHS or first in {STATIC, SIGN_IN.strip("/"), SLACK}:
        return Policy.OPEN
    if path == STREAM_PATH:
        return Policy.COOKIE
    return Policy.PAGE if first in PAGES else Policy.TOKEN


def _pages(console: Part | None) -> list[Route]:
    if console is None:
        return []
    first = sorted(PAGES - {""} | {STATIC, SIGN_IN.strip("/")})
    paths = ["/", *(f"/{one}" for one in first), *(f"/{one}/{{rest:path}}" for one in first)]
    return [Route(path, console.app) for path in paths]


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
            http="httptools", ws="none", timeout_keep_alive=limits.idle_seconds, ws_max_size=LONGEST_MESSAGE,
            ws_per_message_deflate=False,
        )  # fmt: skip
        self._server = QuietServer(config, limits, most, is_socket=is_terminal if sockets_are_there() else _nowhere)

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
