"""HTTP on one connection, with limits that apply before the token check: size and time of requests, time of answers."""

import asyncio
import json
import logging
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from lamplighter.web.connections import Connections
from lamplighter.web.errors import CONNECTION, MEDIA_TYPE


@dataclass(frozen=True)
class Limits:
    """`body_bytes` is more than any route accepts, so that the route itself answers a body that is too large."""

    header_bytes: int = 32 << 10
    headers: int = 100
    header_seconds: float = 10.0
    body_bytes: int = 4 << 20
    body_seconds: float = 10.0
    """In each period of this length at least `body_least` bytes of a body must arrive."""
    body_least: int = 10 << 10
    write_seconds: float = 30.0
    """How long the client may leave an answer unread once writing has paused."""
    pipelined: int = 16
    idle_seconds: int = 5


class Phase(Enum):
    WAITING = auto()
    HEADER = auto()
    BODY = auto()
    RECEIVED = auto()


@dataclass(frozen=True)
class Port:
    """What the connections of one server share."""

    limits: Limits
    connections: Connections
    tell: Callable[..., None]
    """Logs cut connections and refused requests."""
    logger: logging.Logger
    is_socket: Callable[[str], bool] = lambda _path: False
    """Whether a web socket is served at a path; elsewhere the wish for one is ignored."""


class _TooMuch(Exception):
    """Raised inside the parser's callbacks; the connection then ends with 431."""


class BoundedProtocol(HttpToolsProtocol):
    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], port: Port
    ) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self.logger = port.logger
        self.address = ""
        self._port = port
        self._limits = port.limits
        self._phase = Phase.WAITING
        self._asked = False
        self._upgrades = False
        self._header_bytes = 0
        self._body_bytes = 0
        self._body_before = 0
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        return self._phase is Phase.RECEIVED and self._answering

    @property
    def _answering(self) -> bool:
        return self._asked and not self.cycle.response_complete

    def trust(self) -> None:
        self._port.connections.trust(self)

    def tell(self, event: str, **fields: Any) -> None:
        """Log the event: at once, or counted if it repeats."""
        self._port.tell(event, **fields)

    def drop(self, reason: str) -> None:
        """Cut the connection without an answer, so that a client that fills the port costs as little as possible."""
        self._port.tell("web.cut", reason=reason)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if self._port.connections.add(self):
            self._wait(self._limits.header_seconds, self._header_late)
        else:
            self.drop("no_room")

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.connections.remove(self)
        self._stop_waiting()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._timer is None:
            self._wait(self._limits.header_seconds, self._header_late)
        piece = self._limits.header_bytes // 4
        for start in range(0, len(data), piece):
            if self.transport.is_closing() or self._upgrades:
                return
            self._take_in(data[start : start + piece])

    def _take_in(self, piece: bytes) -> None:
        """Parse a piece and count it for the header or body that it leaves unfinished; limits are exact to a piece."""
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            if self._upgrades:
                self._become_socket()
                return
            self.cycle.keep_alive = False  # what follows is not HTTP
        except httptools.HttpParserError as error:
            self._refuse_unreadable(error)
            return
        if self._phase is Phase.BODY:
            self._body_bytes += len(piece)
            if self._body_bytes > self._limits.body_bytes:
                self.drop("body_too_large")
        elif self._phase is not Phase.RECEIVED:
            self._header_bytes += len(piece)
            if self._header_bytes > self._limits.header_bytes:
                self._refuse(431, "The header of the request is too large.", "header_too_large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CONNECTION] = self  # type: ignore[literal-required]  # our key, used by Authenticate
        self._phase = Phase.HEADER
        self._header_bytes = 0
        self._upgrades = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is not Phase.HEADER:
            return  # a trailer: no route reads those
        if len(self.headers) >= self._limits.headers:
            raise _TooMuch
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            raise _TooMuch
        self._upgrades = self._wants_socket()
        super().on_headers_complete()
        if self._upgrades:
            return
        self._phase, self._asked = Phase.BODY, True
        self._body_bytes = self._body_before = 0
        self._wait(self._limits.body_seconds, self._body_late)

    def _should_upgrade(self) -> bool:
        return self._upgrades

    def _wants_socket(self) -> bool:
        """Whether a socket is asked for where there is one, by a connection that has nothing else to answer."""
        if self._answering or self.pipeline or self.parser.get_method() != b"GET" or not self.parser.should_upgrade():
            return False
        path = urllib.parse.unquote(self.url.partition(b"?")[0].decode("ascii", "replace"))
        return self._get_upgrade() == b"websocket" and self._port.is_socket(path)

    def _become_socket(self) -> None:
        """Hand the connection over to a socket, which gets the request as it came."""
        from lamplighter.web import sockets

        self._stop_waiting()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        head = [b"GET ", self.url, b" HTTP/1.1\r\n"]
        for name, value in self.scope["headers"]:
            head += [name, b": ", value, b"\r\n"]
        made = sockets.opened(self, self._port, b"".join([*head, b"\r\n"]))
        self._port.connections.replace(self, made)
        self.transport.set_protocol(made)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase = Phase.RECEIVED
        self._header_bytes = 0
        self._stop_waiting()

    def on_response_complete(self) -> None:
        """What came of a body that nobody reads any more is let go, though the connection stays."""
        if self.cycle.response_complete:
            self.cycle.body = bytearray()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(self._limits.write_seconds, self.drop, "answer_not_read")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def _header_late(self) -> None:
        """Refuse the client, which has had the time of a whole header, unless it is waiting for an answer."""
        if self.busy:
            self._wait(self._limits.header_seconds, self._header_late)
        else:
            self._refuse(408, "The request did not come in time.", "header_too_slow")

    def _body_late(self) -> None:
        """Drop the connection if the request is answered already, or the body is too slow and reading is not paused."""
        answered = self.cycle.response_complete
        too_little = self._body_bytes - self._body_before < self._limits.body_least
        if answered or (too_little and not self.flow.read_paused):
            self.drop("body_too_slow")
            return
        self._body_before = self._body_bytes
        self._wait(self._limits.body_seconds, self._body_late)

    def _refuse_unreadable(self, error: httptools.HttpParserError) -> None:
        if isinstance(error.__context__, _TooMuch):
            self._refuse(431, "The request has too many headers, or too many requests wait.", "too_many_headers")
        else:
            self._refuse(400, "This is not an HTTP request.", "not_http")

    def _refuse(self, status: int, detail: str, reason: str) -> None:
        self._port.tell("web.cut", reason=reason)
        if not self.transport.is_closing() and not self._answering:
            self.transport.write(_answer(status, detail))
        self.transport.close()

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._over, then)

    def _over(self, then: Callable[[], None]) -> None:
        self._timer = None
        if not self.transport.is_closing():
            then()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def _answer(status: int, detail: str) -> bytes:
    title = HTTPStatus(status).phrase
    body = json.dumps({"type": "http", "title": title, "detail": detail, "hint": "", "status": status}).encode()
    head = f"HTTP/1.1 {status} {title}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return f"{head}content-type: {MEDIA_TYPE}\r\n\r\n".encode() + body
