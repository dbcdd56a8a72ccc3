"""Accepts connections from a listening socket: a few at a time, and without a busy loop if descriptors run out."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from lamplighter.web.connections import Connections

AT_ONCE = 32
"""How many are accepted before the event loop reads what connections sent: in a flood, connections with a request are
answered before the next batch displaces them."""
REST_SECONDS = 0.2


class Acceptor:
    """Accepts on `listener` from `start` to `close`, which leaves the socket itself open."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        connections: Connections,
        tell: Callable[..., None],
    ) -> None:
        self._listener = listener
        self._make = make
        self._connections = connections
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._resting: asyncio.TimerHandle | None = None
        self._joining: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._resting = None
        self._loop.add_reader(self._listener, self._accept_some)

    def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        else:
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        while self._joining:
            await asyncio.wait(self._joining)

    def _accept_some(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # the client left before it was accepted
            except OSError as error:
                self._rest(error)
                return
            joining = self._loop.create_task(self._join(connection), name="connection")
            self._joining.add(joining)
            joining.add_done_callback(self._joining.discard)

    async def _join(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # it only affects speed
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError as error:
            connection.close()
            self._tell("web.accept_failed", error=error.strerror or str(error))

    def _rest(self, error: OSError) -> None:
        """Out of descriptors or memory: drop one connection and accept again after REST_SECONDS."""
        self._tell("web.accept_failed", error=error.strerror or str(error))
        self._connections.make_room()
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(REST_SECONDS, self.start)
