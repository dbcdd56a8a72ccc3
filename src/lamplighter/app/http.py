"""The city's HTTP server inside its process: its port is known before it serves and stays the same after a restart."""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from lamplighter.app.kept_port import OF_THE_CITY, OF_WORKERS, keep_port, kept_port
from lamplighter.app.wiring import OpenCity
from lamplighter.daemon.active_config import ActiveConfig
from lamplighter.kit import heap, log
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.services.city_operations import CityOperations
from lamplighter.store.tx import Store
from lamplighter.web.listening import bound, url_of

READY_WITHIN = timedelta(seconds=3)
TOOLS_WITHIN = timedelta(seconds=60)


class KeptListener:
    """A listening socket that outlives its server: while the process starts anew, clients wait in its backlog."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._wanted: tuple[str, int] | None = None

    def keep(self, listener: socket.socket, wanted: tuple[str, int]) -> None:
        if self._socket is None:
            self._socket, self._wanted = listener.dup(), wanted

    def again(self, wanted: tuple[str, int]) -> socket.socket | None:
        """The kept socket for the next server; closed, and None, if that wants a different address."""
        if self._socket is None or self._wanted != wanted:
            self.close()
            return None
        return self._socket.dup()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@dataclass
class HttpServer:
    """`url` is known from `open` on; requests that come before the server is loaded wait in the socket's backlog."""

    opened: OpenCity
    store: Store
    operations: CityOperations
    host: str
    port: int
    active: Callable[[], ActiveConfig]
    shared: bool = False
    """One port for all workers of a node: any living worker answers, so that programs can outlive the worker that
    started them."""
    must: bool = False
    """A person has chosen the port; any other is a problem."""
    kept: KeptListener = field(default_factory=KeptListener)
    url: str | None = None
    """Where it is reached; still known when the server has stopped, because the next one takes the same port."""
    port_before: int | None = None
    """The one that the last server of this city had."""
    _port: int | None = None
    _listener: socket.socket | None = None
    _server: Any = None
    _taken: list[str] = field(default_factory=list)
    _tools: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def open(self) -> None:
        """Bind the port. Raises Unavailable if no port is free."""
        wanted = (self.host, self.port)
        self.port_before = kept_port(self._file, *wanted)
        self._listener = self.kept.again(wanted)
        if self._listener is None:
            with self._alone():
                self._listener = self._bound()
                keep_port(self._file, self.host, self.port, self._listener.getsockname()[1])
            self.kept.keep(self._listener, wanted)
        self.url, self._port = url_of(self._listener), self._listener.getsockname()[1]

    @property
    def problem(self) -> str | None:
        """That it does not listen at the port it was told to; None if it does, or if any port will do."""
        if not self.must or self._port in (None, self.port):
            return None
        return f"Another program had port {self.port} when the city started; the API is at {self.url}."

    async def run(self) -> None:
        """Serve until `stop`. The server's modules are loaded on a thread, because that takes a while."""
        if self._listener is None or self._listener.fileno() < 0:
            self.open()
        for told in self._taken:
            log.get().warning("api.port_taken", error=told, url=self.url)
        surface, web = await asyncio.to_thread(_load)
        if self.operations.stopping.is_set():
            return
        reached = lambda: surface.Reached(self.host, self.active().city.api.public_url)  # noqa: E731  read again for each request
        made = surface.surface(self.opened, self.operations, self._ready, reached=reached)
        app = web.build(made)
        self._server = web.WebServer(app, listener=self._listener)
        heap.settle()  # this is the last part that is loaded at the start
        if not self._tools.done():
            self._tools.set_result(made.tools_loaded)
        try:
            await self._server.serve()
        finally:
            self._server = None

    async def tools_ready(self) -> None:
        """Return once the tools of agents are served, or after TOOLS_WITHIN.

        They are loaded when they are first needed, which takes seconds on a busy machine, and some programs do not wait
        for their first answer: they go on without tools.
        """
        with suppress(TimeoutError):
            async with TimeLimit(TOOLS_WITHIN.total_seconds()):
                await (await asyncio.shield(self._tools))()

    async def stop(self) -> None:
        self.operations.stopping.set()
        if self._server is not None:
            self._server.stop()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _ready(self) -> str | None:
        """Why the city is not ready; None if it is. Waits READY_WITHIN for the database and drops a later answer."""
        asked = asyncio.ensure_future(self.store.read(lambda tx: tx.cities.find()))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        done, _ = await asyncio.wait({asked}, timeout=READY_WITHIN.total_seconds())
        if not done:
            return f"The database did not answer within {READY_WITHIN.total_seconds():g} s."
        try:
            await asked
        except Unavailable as error:
            return error.message
        return None

    def _bound(self) -> socket.socket:
        """Try the previous port first, which running programs still use; then the configured one, then any free one."""
        before = kept_port(self._file, self.host, self.port)  # read under the lock: another worker may just have chosen
        for port in dict.fromkeys([before or self.port, self.port]):
            try:
                return bound(self.host, port, shared=self.shared)
            except Unavailable as error:
                self._taken.append(error.message)
        return bound(self.host, 0, shared=self.shared)

    @property
    def _file(self) -> Path:
        return self.opened.paths.runtime / (OF_WORKERS if self.shared else OF_THE_CITY)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the choice of a shared port: two workers that start together must not choose different ports."""
        if not self.shared:
            yield
            return
        fd = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _load() -> tuple[Any, Any]:
    from lamplighter.app import surfaces
    from lamplighter.web import server

    return surfaces, server
