"""Servers that break connections: a proxy before PostgreSQL that cuts a commit midway, and a server that shuts down."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
CHUNK = 65536


class Cut(Enum):
    """Where the connection is cut: on the way to the server, so that nothing is committed, or on the way back."""

    REQUEST = "request"
    ANSWER = "answer"


class Partition(Enum):
    """How clients are kept from the server: their connections are ended and refused, or nothing gets through them."""

    CUT = "cut"
    SILENT = "silent"


class CuttingProxy:
    """Listens in `home`, which a client's URL gives as its host.

    `cut_next` makes it cut one commit; `part` keeps all of its clients from the server until `heal`.
    """

    def __init__(self, home: Path, server: Path) -> None:
        self.home = home
        self._server = server / SOCKET
        self._next: Cut | None = None
        self.cuts = 0
        self._parted: Partition | None = None
        self._together = threading.Event()
        self._together.set()
        self._ends: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="cutting-proxy", daemon=True).start()

    def cut_next(self, cut: Cut) -> None:
        self._next = cut

    def part(self, how: Partition) -> None:
        self._parted = how
        self._together.clear()
        if how is Partition.CUT:
            for end in tuple(self._ends):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        self._parted = None
        self._together.set()

    def close(self) -> None:
        self.heal()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        if self._parted is Partition.CUT:
            client.close()
            return
        self._together.wait()
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._server))
        self._ends |= {client, server}
        back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
        back.start()
        with suppress(OSError):
            while data := client.recv(CHUNK):
                self._wait_in_silence()
                if self._next is not None and b"COMMIT" in data:
                    self._end(client, server, data)
                    break
                server.sendall(data)
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            self._ends.discard(end)
            end.close()

    def _wait_in_silence(self) -> None:
        if self._parted is Partition.SILENT:
            self._together.wait()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._wait_in_silence()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def _end(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        cut, self._next = self._next, None
        client.shutdown(socket.SHUT_RDWR)  # no part of the answer gets through
        if cut is Cut.ANSWER:
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)  # the server commits, and then finds the client gone
        self.cuts += 1


@contextmanager
def cutting_proxy(home: Path, server: Path) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(home, server)
    try:
        yield proxy
    finally:
        proxy.close()


AUTHENTICATED = b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I"
"""What a server sends after a successful authentication."""
ADMIN_SHUTDOWN = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


@contextmanager
def stopping_server(home: Path) -> Iterator[None]:
    """Accepts every client and ends the connection at its first statement, as a server that is shutting down does."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home / SOCKET))
    listener.listen(64)

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.recv(CHUNK)
                client.sendall(AUTHENTICATED)
                client.recv(CHUNK)
                client.sendall(b"E" + struct.pack("!i", len(ADMIN_SHUTDOWN) + 4) + ADMIN_SHUTDOWN)

    threading.Thread(target=serve, name="stopping-server", daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
