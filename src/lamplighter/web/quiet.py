"""A uvicorn server without polling: plain uvicorn wakes ten times a second to set the date and check for its end."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from lamplighter.kit.clock import SystemClock
from lamplighter.kit.repeats import Repeats
from lamplighter.web.accepting import Acceptor
from lamplighter.web.connections import Connections, most_connections
from lamplighter.web.logger import web_logger
from lamplighter.web.protocol import BoundedProtocol, Limits, Port

_CLOCK = SystemClock()
IsSocket = Callable[[str], bool]


class QuietServer(uvicorn.Server):
    """Leaves signals to the process; `stop` ends it. It accepts connections itself, to limit them."""

    def __init__(self, config: uvicorn.Config, limits: Limits, most: int | None = None, *, is_socket: IsSocket) -> None:
        super().__init__(config)
        self.server_state = _DatedState()
        self._told = asyncio.Event()
        self._limits = limits
        self._is_socket = is_socket
        self.connections = Connections(most or most_connections())
        self._repeats: Repeats | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise RuntimeError("the web application did not start")
        loop = asyncio.get_running_loop()
        repeats = self._repeats = Repeats(loop.call_later)
        port = Port(self._limits, self.connections, repeats.tell, web_logger(repeats.tell), self._is_socket)
        make = partial(BoundedProtocol, self.config, self.server_state, self.lifespan.state, port)
        acceptors = [Acceptor(one, make, self.connections, repeats.tell) for one in sockets or ()]
        for acceptor in acceptors:
            acceptor.start()
        self.servers = cast("Any", acceptors)  # the base class uses only methods that these have
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._repeats is not None:
            self._repeats.flush()

    def stop(self) -> None:
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        await self._told.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _DatedState(ServerState):
    """Computes the default headers at each answer; the date is formatted again only when a second has passed."""

    _second = 0
    _dated: list[tuple[bytes, bytes]]

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        second = int(_CLOCK.now().timestamp())
        if second != self._second:
            self._second = second
            self._dated = [(b"date", formatdate(second, usegmt=True).encode())]
        return self._dated

    @default_headers.setter
    def default_headers(self, _value: list[tuple[bytes, bytes]]) -> None:
        """Ignores the empty list that the base class sets."""
