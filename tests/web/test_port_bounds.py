"""What strangers cost: raw connections to a server with short limits, and no token anywhere."""

import asyncio
import errno
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lamplighter.domain.tokens import TokenBook
from lamplighter.kit import log
from lamplighter.web.accepting import Acceptor
from lamplighter.web.bodies import json_object
from lamplighter.web.connections import Connections
from lamplighter.web.hosts import Reached
from lamplighter.web.protocol import Limits
from lamplighter.web.server import Surface, WebServer, build

SHORT = Limits(header_seconds=0.3, body_seconds=0.3, write_seconds=0.3, idle_seconds=1)
PATIENT = Limits(header_seconds=30, body_seconds=30, idle_seconds=30)
WITHIN = 120.0


TOKENS = TokenBook(b"k" * 32, "o" * 40)


async def _ready() -> str | None:
    return None


@dataclass
class Town:
    server: WebServer
    held: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: list[Any] = field(default_factory=list)
    reached: Reached = field(default_factory=Reached)

    @property
    def host(self) -> bytes:
        return f"127.0.0.1:{self.server.port}".encode()

    def request(self, path: bytes = b"/healthz", method: bytes = b"GET", more: bytes = b"") -> bytes:
        return b"%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (method, path, self.host, more)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port)

    async def answer(self, sent: bytes) -> bytes:
        """All that comes back until the other side closes."""
        async with asyncio.timeout(WITHIN):
            reader, writer = await self.connect()
            return await said(reader, writer, sent)


async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes = b"") -> bytes:
    found = b""
    async with asyncio.timeout(WITHIN):
        try:
            if sent:
                writer.write(sent)
            while piece := await reader.read(1 << 16):
                found += piece
        except ConnectionError:
            pass
        finally:
            writer.close()
    return found


@asynccontextmanager
async def town(limits: Limits = SHORT, *, most: int = 64) -> AsyncIterator[Town]:
    async def hold(_request: Request) -> Response:
        await opened.held.wait()
        return JSONResponse({"held": True})

    async def take(request: Request) -> Response:
        opened.bodies.append(await json_object(request))
        return JSONResponse({"taken": True})

    async def much(_request: Request) -> Response:
        return Response(b"x" * (64 << 20))

    routes = [Route("/hold", hold), Route("/take", take, methods=["POST"]), Route("/much", much)]
    surface = Surface(TOKENS, _ready, routes, reached=lambda: opened.reached)
    opened = Town(WebServer(build(surface), limits=limits, most=most))
    serving = asyncio.create_task(opened.server.serve())
    try:
        yield opened
    finally:
        opened.held.set()
        opened.server.stop()
        await serving


SHOWN = b"Authorization: Bearer %s\r\n" % (b"o" * 40)


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_whoever_does_not_finish_a_header_is_cut(sent: bytes) -> None:
    async with town() as here:
        assert b" 408 " in await here.answer(sent)


async def test_a_header_that_comes_in_drops_is_cut_all_the_same() -> None:
    async with town() as here:
        reader, writer = await here.connect()

        async def drip() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert b" 408 " in await said(reader, writer, b"GET / HTTP/1.1\r\nX-Slow: ")
        dripping.cancel()


@pytest.mark.parametrize("more", [b"Content-Length: 1000\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("token", [b"", SHOWN], ids=["stranger", "token"])
async def test_a_body_that_does_not_come_is_cut(more: bytes, token: bytes) -> None:
    async with town() as here:
        found = await here.answer(here.request(b"/take", b"POST", more + token) + b"1")
        assert found == b"" if token else b" 401 " in found
        assert here.bodies == []


async def test_a_body_without_an_end_is_cut() -> None:
    async with town(PATIENT) as here:
        head = here.request(b"/take", b"POST", b"Content-Length: 99999999\r\n")
        assert b" 401 " in await here.answer(head + b"x" * (6 << 20))


@pytest.mark.parametrize(
    "sent",
    [b"X: " + b"a" * (1 << 20), b"".join(b"h%d: v\r\n" % number for number in range(100_000))],
    ids=["one giant", "many small"],
)
async def test_a_header_without_an_end_is_refused_after_its_first_kilobytes(sent: bytes) -> None:
    async with town(PATIENT) as here:
        assert b" 200 " not in await here.answer(b"GET /healthz HTTP/1.1\r\n" + sent)
        assert b" 431 " in await here.answer(b"GET /healthz HTTP/1.1\r\n" + sent[: 33 << 10])
        assert b" 200 " in await here.answer(here.request(more=b"Connection: close\r\n"))


async def test_trailers_are_not_kept() -> None:
    async with town(PATIENT) as here:
        head = here.request(b"/take", b"POST", SHOWN + b"Transfer-Encoding: chunked\r\nConnection: close\r\n")
        found = await here.answer(head + b"2\r\n{}\r\n0\r\n" + b"x: y\r\n" * 5000 + b"\r\n")
        assert b" 200 " in found
        assert here.bodies == [{}]


async def test_a_header_of_the_usual_size_and_a_body_of_the_largest_kind_pass() -> None:
    async with town(PATIENT) as here:
        body = b'{"x": "' + b"y" * ((1 << 20) - 10) + b'"}'
        more = b"Content-Length: %d\r\nConnection: close\r\nX: %s\r\n" % (len(body), b"a" * (16 << 10))
        assert b" 200 " in await here.answer(here.request(b"/take", b"POST", SHOWN + more) + body)
        assert len(here.bodies) == 1


async def test_requests_sent_ahead_are_answered_in_order_and_a_flood_of_them_refused() -> None:
    async with town(PATIENT) as here:
        several = here.request() * 5 + here.request(more=b"Connection: close\r\n")
        assert (await here.answer(several)).count(b" 200 ") == 6
        assert (await here.answer(here.request() * 5000)).count(b" 200 ") < 5000


async def test_an_idle_connection_is_closed() -> None:
    async with town() as here:
        assert (await here.answer(here.request())).count(b" 200 ") == 1
        assert (await here.answer(here.request() + b"\r\n")).count(b" 200 ") == 1


async def test_whoever_waits_for_a_long_answer_is_not_cut() -> None:
    async with town() as here:
        reader, writer = await here.connect()
        writer.write(here.request(b"/hold", more=SHOWN + b"Connection: close\r\n") + b"\r\n")
        assert b" 408 " in await here.answer(b"")  # by then its own time would have been over too
        here.held.set()
        assert b"held" in await said(reader, writer)


async def test_an_answer_that_nobody_reads_is_dropped() -> None:
    async with town() as here:
        _, writer = await here.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of the loop's has it
        writer.write(here.request(b"/much", more=SHOWN))
        for _ in range(2000):
            if here.server.connections == 0:
                break
            await asyncio.sleep(0.01)
        assert here.server.connections == 0
        writer.transport.abort()


async def test_idle_strangers_make_room_for_the_next_caller() -> None:
    async with town(PATIENT, most=8) as here, AsyncExitStack() as held:
        for _ in range(100):
            _, writer = await here.connect()
            held.callback(writer.close)
        assert b" 200 " in await here.answer(here.request(more=b"Connection: close\r\n"))
        assert here.server.connections <= 8


async def test_whoever_showed_a_token_stays_while_strangers_go() -> None:
    async with town(PATIENT, most=8) as here, AsyncExitStack() as held:
        reader, writer = await here.connect()
        writer.write(here.request(b"/nowhere", more=SHOWN))
        assert b"404" in await reader.readline()
        for _ in range(50):
            _, other = await here.connect()
            held.callback(other.close)
        assert b" 200 " in await said(reader, writer, here.request(more=b"Connection: close\r\n"))


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00", b"nonsense\r\n\r\n", b"\0" * 999])
async def test_what_is_no_http_is_refused_in_problem_json(sent: bytes) -> None:
    async with town(PATIENT) as here:
        found = await here.answer(sent)
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b"application/problem+json" in found


async def test_an_upgrade_is_answered_as_if_it_had_not_been_asked_for() -> None:
    async with town(PATIENT) as here:
        found = await here.answer(here.request(more=b"Connection: Upgrade\r\nUpgrade: websocket\r\n"))
        assert b" 200 " in found


async def test_half_closed_connections_go() -> None:
    async with town(PATIENT) as here:
        for sent in (b"", b"GET / HT", here.request(b"/take", b"POST", SHOWN + b"Content-Length: 9\r\n") + b"1"):
            reader, writer = await here.connect()
            writer.write(sent)
            writer.write_eof()
            assert await said(reader, writer) == b""


async def test_running_out_of_descriptors_is_rested_upon_and_survived() -> None:
    told: list[str] = []
    with Listener() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        joined = asyncio.Event()
        acceptor = Acceptor(
            listener, lambda: Greeted(joined.set), Connections(4), lambda event, **_: told.append(event)
        )
        acceptor.start()
        async with asyncio.timeout(WITHIN):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            await joined.wait()
        acceptor.close()
        writer.close()
    assert told == ["web.accept_failed"] * 3


class Listener(socket.socket):
    failing = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


class Greeted(asyncio.Protocol):
    def __init__(self, greet: Callable[[], None]) -> None:
        self._greet = greet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._greet()
        transport.close()


async def test_whoever_hangs_up_is_one_line_and_hundreds_of_bad_requests_are_two(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    log.set_up(sys.stderr)
    request.addfinalizer(structlog.reset_defaults)
    async with town(PATIENT) as here:
        for _ in range(100):
            await here.answer(b"nonsense\r\n\r\n")
            _, writer = await here.connect()
            writer.write(here.request(b"/take", b"POST", SHOWN + b"Content-Length: 9\r\n") + b"1")
            await writer.drain()
            writer.close()
    lines = capsys.readouterr().err.splitlines()
    assert sum("web.cut" in line for line in lines) == 2
    assert 1 <= sum("web.client_left" in line for line in lines) <= 2
    assert len(lines) <= 4, lines


@pytest.mark.parametrize(("header", "value"), [("Host", "evil.example"), ("Origin", "https://evil.example")])
async def test_a_foreign_page_is_refused_before_its_token_is_looked_at(header: str, value: str) -> None:
    async with town(PATIENT) as here:
        for path in (b"/healthz", b"/take", b"/nowhere"):
            host = b"" if header == "Host" else b"Host: " + here.host + b"\r\n"
            sent = b"GET %s HTTP/1.1\r\n%s%s: %s\r\n%sConnection: close\r\n\r\n"
            found = await here.answer(sent % (path, host, header.encode(), value.encode(), SHOWN))
            assert found.startswith(b"HTTP/1.1 403 ")
            assert value.encode() in found
            assert b"application/problem+json" in found


async def test_the_public_address_is_one_of_its_own() -> None:
    async with town(PATIENT) as here:
        sent = b"GET /healthz HTTP/1.1\r\nHost: lamp.example.org\r\nConnection: close\r\n\r\n"
        assert b" 403 " in await here.answer(sent)
        here.reached = Reached(public_url="https://lamp.example.org")
        assert b" 200 " in await here.answer(sent)
