"""Web sockets on the port, within the same limits as requests: who is dropped for room, and how long an answer waits.

Loaded only when a browser asks for one: the library behind it is the extra `terminal`.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto import events

from lamplighter.web.errors import CONNECTION

if TYPE_CHECKING:
    from lamplighter.web.protocol import BoundedProtocol, Port


class BoundedSocket(WSProtocol):
    """Takes the place of the connection that asked for it."""

    def __init__(self, before: "BoundedProtocol", port: "Port") -> None:
        super().__init__(before.config, before.server_state, before.app_state, before.loop)
        self.logger = port.logger
        self.address = before.address
        self.busy = True
        """A socket is in use until it is closed: others go first when room is needed."""
        self._port = port
        self._write_timer: asyncio.TimerHandle | None = None

    def trust(self) -> None:
        self._port.connections.trust(self)

    def drop(self, reason: str) -> None:
        self._port.tell("web.cut", reason=reason)
        self.transport.abort()

    def handle_connect(self, event: events.Request) -> None:
        super().handle_connect(event)
        self.scope[CONNECTION] = self  # type: ignore[literal-required]  # our key, used by Authenticate

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.connections.remove(self)
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(self._port.limits.write_seconds, self.drop, "answer_not_read")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def opened(before: "BoundedProtocol", port: "Port", request: bytes) -> Any:
    """A socket in the place of `before`; `request` is the request that asked for it, as it came."""
    made = BoundedSocket(before, port)
    made.connection_made(before.transport)
    made.data_received(request)
    return made
