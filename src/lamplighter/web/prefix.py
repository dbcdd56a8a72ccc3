"""A city below a path of its public address, such as https://lamp.example.org/city: what a proxy puts there.

The proxy may pass the path on or take it off. Pages are written without it; it is put into their links on the way out,
which is safe, because nothing that is quoted in a page has a bare quotation mark.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamplighter.web.hosts import LOOPBACK, Reached, site_of

PREFIX = "lamp.prefix"
"""Key of the scope of a request that came below the prefix, or for the public address: the prefix."""

_LINKS = re.compile(
    rb'( (?:href|src|action|formaction|data-socket|data-module|data-preview|data-prefix|data-refetch)=")/(?!/)'
)


def prefix_of(public_url: str) -> str:
    """The path of the public address without its last slash; empty if it has none."""
    try:
        return urlsplit(public_url).path.rstrip("/")
    except ValueError:
        return ""


def path_below(path: str, prefix: str) -> str | None:
    """The path as the city knows it; None for one that is not below the prefix."""
    return path[len(prefix) :] or "/" if path == prefix or path.startswith(f"{prefix}/") else None


class Prefixed:
    """Takes the prefix off the paths of requests, and puts it before the paths in pages and redirects."""

    def __init__(self, app: ASGIApp, reached: Callable[[], Reached]) -> None:
        self._app = app
        self._reached = reached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reached = self._reached() if scope["type"] in {"http", "websocket"} else Reached()
        prefix = prefix_of(reached.public_url)
        if not prefix:
            await self._app(scope, receive, send)
            return
        below = path_below(scope["path"], prefix)
        if below is not None:
            raw = path_below(scope.get("raw_path", b"").decode("latin-1"), prefix) or ""
            # in that a slash within a name is told from one between names
            scope = {**scope, "path": below, "raw_path": raw.encode("latin-1")}
        if scope["type"] == "http" and (below is not None or _is_public(scope, reached)):
            scope[PREFIX] = prefix
            send = _Rewritten(send, prefix.encode())
        await self._app(scope, receive, send)


def _is_public(scope: Scope, reached: Reached) -> bool:
    """Whether it names the public address: a proxy has taken the prefix off. A city asked at its own port has none."""
    host = Headers(scope=scope).get("host")
    public = site_of(reached.public_url)
    if host is None or public is None or public[1] in LOOPBACK:
        return False
    return site_of(f"{public[0]}://{host}") == public


class _Rewritten:
    def __init__(self, send: Send, prefix: bytes) -> None:
        self._send = send
        self._prefix = prefix
        self._start: Message | None = None
        self._page = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            where = headers.get("location", "")
            if where.startswith("/") and not where.startswith("//"):
                headers["location"] = self._prefix.decode() + where
            following = headers.get("link", "")
            if following.startswith("</") and not following.startswith("<//"):
                headers["link"] = f"<{self._prefix.decode()}{following[1:]}"
            message = {**message, "headers": headers.raw}
            if headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers:
                self._start = message
                return
        elif message["type"] == "http.response.body" and self._start is not None:
            self._page += message.get("body", b"")
            if message.get("more_body"):
                return
            page = _LINKS.sub(rb"\1" + self._prefix + b"/", self._page)
            headers = MutableHeaders(raw=list(self._start["headers"]))
            headers["content-length"] = str(len(page))
            await self._send({**self._start, "headers": headers.raw})
            self._start = None
            message = {**message, "body": page}
        await self._send(message)
