"""Slack as far as Lamplighter speaks to it, on this machine: the Web API over HTTP, and Socket Mode over WebSockets.

It can be slow, limit rates, fail, take a message and never answer, and cut sockets.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from lamplighter.testing.slack_shapes import APP, APP_TOKEN, BOT_TOKEN
from lamplighter.testing.slack_streams import SlackError
from lamplighter.testing.slack_workspace import METHODS, SlackWorkspace


@dataclass(frozen=True)
class Limited:
    """429 with `Retry-After`."""

    seconds: int = 1


@dataclass(frozen=True)
class Broken:
    """An answer that is none of Slack's API, as of something between."""

    status: int = 503


@dataclass(frozen=True)
class Lost:
    """The connection is closed without an answer; whether the call was carried out, nobody is told."""

    taken: bool = True


@dataclass(frozen=True)
class Refused:
    """`ok: false` with this error."""

    error: str


@dataclass(frozen=True)
class Slow:
    seconds: float


Trouble = Limited | Broken | Lost | Refused | Slow


@dataclass(frozen=True)
class Called:
    method: str
    args: Mapping[str, Any]
    ok: bool


@dataclass
class SlackServer(SlackWorkspace):
    """`trouble` is asked before each call, with the method and how many calls of it there were before; then
    `trouble_with`, with the method and its arguments."""

    calls: list[Called] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    opened: int = 0
    """How many sockets were opened."""
    trouble: Callable[[str, int], Trouble | None] = lambda _method, _before: None
    trouble_with: Callable[[str, Mapping[str, Any]], Trouble | None] = lambda _method, _args: None
    came: threading.Condition = field(default_factory=threading.Condition)
    _sockets: "dict[WebSocket, asyncio.Task[None]]" = field(default_factory=dict)
    _waiting: dict[str, tuple[str, WebSocket | None]] = field(default_factory=dict)
    """What is not acknowledged yet, and the socket it was sent over."""
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def api(self) -> str:
        return f"{self.url}/api/"

    @property
    def sockets(self) -> int:
        """How many are open."""
        return len(self._sockets)

    @property
    def unacknowledged(self) -> int:
        """How many envelopes that were delivered are not acknowledged yet."""
        return len(self._waiting)

    def of(self, method: str) -> list[Called]:
        """The calls of a method that were carried out."""
        return [one for one in self.calls if one.method == method and one.ok]

    def wait_until(self, holds: Callable[[], Any], *, within: float = 120.0) -> Any:
        """Wait until something that a call changes holds. Raises TimeoutError."""
        with self.came:
            if not self.came.wait_for(holds, within):
                raise TimeoutError(f"it does not hold after {[one.method for one in self.calls]}")
            return holds()

    # ── Socket Mode ───────────────────────────────────────────────────────────────────────────────────────────────

    def push(self, kind: str, payload: Mapping[str, Any], envelope: str) -> None:
        """Send an envelope once, over the socket that was opened last."""
        self._in_loop(lambda: list(self._sockets)[-1].send_text(_enveloped(kind, payload, envelope)))

    def deliver(self, kind: str, payload: Mapping[str, Any], envelope: str) -> None:
        """Send an envelope over one of the sockets, and over another one until it is acknowledged."""
        self._waiting[envelope] = (_enveloped(kind, payload, envelope), None)
        self._in_loop(self._send_waiting)

    def ask_to_reconnect(self) -> None:
        """As Slack does before it closes a socket itself."""
        told = json.dumps({"type": "disconnect", "reason": "warning"})
        self._in_loop(lambda: list(self._sockets)[-1].send_text(told))

    def cut(self, *, silently: bool = False, most: int | None = None) -> int:
        """Close the sockets, or so many of them; silently is without a word. Returns how many were closed."""

        async def close() -> int:
            chosen = list(self._sockets)[:most]
            for one in chosen:
                if silently:
                    self._sockets[one].cancel()
                else:
                    await one.close(1001)
            return len(chosen)

        return int(self._in_loop(close))

    async def _send_waiting(self) -> None:
        for envelope, (text, socket) in list(self._waiting.items()):
            others = [one for one in self._sockets if one is not socket]
            if socket in self._sockets or not others:
                continue
            chosen = others[len(self.acknowledged) % len(others)]
            self._waiting[envelope] = (text, chosen)
            with suppress(RuntimeError, WebSocketDisconnect):  # it is being closed: it goes over another one then
                await chosen.send_text(text)

    def _in_loop(self, work: Callable[[], Any]) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(30)


def _enveloped(kind: str, payload: Mapping[str, Any], envelope: str) -> str:
    told = {"envelope_id": envelope, "type": kind, "payload": payload, "accepts_response_payload": False}
    return json.dumps(told)


# ── serving ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _call(server: SlackServer, request: Request) -> Response:
    method, args = request.path_params["method"], await _args(request)
    trouble = server.trouble(method, sum(one.method == method for one in server.calls))
    trouble = trouble or server.trouble_with(method, args)
    if isinstance(trouble, Slow):
        await asyncio.sleep(trouble.seconds)
    answer: dict[str, Any]
    with server.came:
        try:
            if isinstance(trouble, Limited | Broken) or (isinstance(trouble, Lost) and not trouble.taken):
                server.calls.append(Called(method, args, ok=False))
                server.came.notify_all()
                return _in_the_way(trouble)
            answer = {"ok": True} | _carried_out(server, request, method, args, trouble)
        except SlackError as error:
            answer = {"ok": False, "error": str(error)}
        server.calls.append(Called(method, args, ok=answer["ok"]))
        server.came.notify_all()
    headers = {"x-oauth-scopes": ",".join(server.scopes)}
    return _Nothing() if isinstance(trouble, Lost) else JSONResponse(answer, headers=headers)


class _Nothing(Response):
    """Promises an answer and closes the connection before any of it."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})


def _carried_out(
    server: SlackServer, request: Request, method: str, args: dict[str, Any], trouble: Trouble | None
) -> dict[str, Any]:
    if isinstance(trouble, Refused):
        raise SlackError(trouble.error)
    _authorize(request, method, args)
    if method not in METHODS:
        raise SlackError("unknown_method")
    return METHODS[method](server, args)


def _in_the_way(trouble: Limited | Broken | Lost) -> Response:
    if isinstance(trouble, Lost):
        return _Nothing()
    if isinstance(trouble, Limited):
        told = {"ok": False, "error": "ratelimited"}
        return JSONResponse(told, status_code=429, headers={"retry-after": str(trouble.seconds)})
    return PlainTextResponse("upstream is away", status_code=trouble.status)


async def _args(request: Request) -> dict[str, Any]:
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json"):
        found: dict[str, Any] = json.loads(body or b"{}")
        return found
    args: dict[str, Any] = {key: values[0] for key, values in parse_qs(body.decode()).items()}
    args |= dict(request.query_params)
    for key in ("blocks", "metadata", "chunks"):
        if isinstance(args.get(key), str):
            args[key] = json.loads(args[key])
    return args


def _authorize(request: Request, method: str, args: dict[str, Any]) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ") or args.pop("token", "")
    if not given:
        raise SlackError("not_authed")
    if given != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
        raise SlackError("invalid_auth")


async def _link(server: SlackServer, socket: WebSocket) -> None:
    await socket.accept()
    hearing = asyncio.ensure_future(_hear(server, socket))
    with server.came:
        server._sockets[socket] = hearing  # noqa: SLF001  its own
        server.opened += 1
        server.came.notify_all()
    try:
        await asyncio.wait({hearing})
    finally:
        with server.came:
            del server._sockets[socket]  # noqa: SLF001
            server.came.notify_all()
        await server._send_waiting()  # noqa: SLF001


async def _hear(server: SlackServer, socket: WebSocket) -> None:
    """Until it is closed. Cancelled, the connection ends without a word."""
    try:
        hello = {"type": "hello", "num_connections": server.sockets, "connection_info": {"app_id": APP}}
        await socket.send_text(json.dumps(hello))
        await server._send_waiting()  # noqa: SLF001
        while True:
            told = json.loads(await socket.receive_text())
            with server.came:
                server.acknowledged.append(told.get("envelope_id", ""))
                server._waiting.pop(told.get("envelope_id", ""), None)  # noqa: SLF001
                server.came.notify_all()
    except (WebSocketDisconnect, RuntimeError):
        pass


@contextmanager
def slack_server() -> Iterator[SlackServer]:
    """Serves in a thread of its own, for programs and for clients that block."""
    server = SlackServer()

    async def call(request: Request) -> Response:
        return await _call(server, request)

    async def link(socket: WebSocket) -> None:
        await _link(server, socket)

    async def file(request: Request) -> Response:
        """Who shows the bot's token is sent on to where the file itself is, which must not be shown it."""
        if request.headers.get("authorization") != f"Bearer {BOT_TOKEN}":
            return Response("<html>Sign in", media_type="text/html")
        return RedirectResponse(f"/stored/{request.path_params['key']}")

    async def stored(request: Request) -> Response:
        if "authorization" in request.headers:
            return Response(status_code=400)
        key = request.path_params["key"]
        return Response(server.files[key], media_type=server.kinds[key])

    app = Starlette(
        routes=[
            Route("/api/{method}", call, methods=["POST", "GET"]),
            Route("/files/{key}", file),
            Route("/stored/{key}", stored),
            WebSocketRoute("/link/", link),
        ]
    )
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off",
                            ws="wsproto", timeout_graceful_shutdown=1)  # fmt: skip
    serving = _Serving(config)

    def serve() -> None:
        async def main() -> None:
            server._loop = asyncio.get_running_loop()  # noqa: SLF001
            await serving.serve()

        asyncio.run(main())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    if not serving.ready.wait(30):
        raise TimeoutError("the server does not serve")
    server.url = f"http://127.0.0.1:{serving.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        serving.should_exit = True
        thread.join(30)


class _Serving(uvicorn.Server):
    """Tells when it serves; signals are the test's own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
