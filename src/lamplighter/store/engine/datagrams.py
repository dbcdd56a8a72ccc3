"""Wake-ups between the processes of a city on one machine: a datagram to every socket in `.gc/wake/`.

A datagram is a hint and may be lost: a full or vanished socket is skipped, and every process that waits also polls.
"""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Container, Iterable
from pathlib import Path

from lamplighter.kit.sockets import reachable
from lamplighter.store.errors import StoreUnavailable

CLOCK_TICK_NS = 50_000_000


class Datagrams:
    """Sends to the sockets in a directory, and opens one to listen on; cheap when no process listens."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = os.fspath(directory)
        self._socket: socket.socket | None = None
        self._names: list[str] = []
        self._changed_at = -1
        """The directory's mtime when `_names` was read; -1 when a later change could have the same mtime."""

    def __del__(self) -> None:
        """Close the socket of a store that was never closed."""
        if self._socket is not None:
            self._socket.close()

    def publish(self, topics: Iterable[str], *, but: Container[str] = ()) -> None:
        """To every listener `but` those whose tasks are woken already."""
        message = " ".join(sorted(topics)).encode()
        if not message:
            return
        for name in self._listeners():
            if name not in but:
                self._send_to(name, message)

    def listen(self, owner: str) -> socket.socket:
        """A non-blocking socket that receives what other processes send. Raises StoreUnavailable."""
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with reachable(self._directory) as base:
                receiver.bind(f"{base}/{owner}")
        except OSError as error:
            receiver.close()
            raise StoreUnavailable(
                f"No socket for wake-ups can be made in {self._directory}: {error.strerror}.",
                hint="Check the owner and mode of the city's .gc directory, its disk and its free space.",
            ) from error
        receiver.setblocking(False)
        return receiver

    def _listeners(self) -> list[str]:
        """The names of the listening sockets; read only if the directory changed, as this runs after every commit."""
        try:
            changed_at = os.stat(self._path).st_mtime_ns  # noqa: PTH116  a hot path
            if changed_at != self._changed_at:
                self._names = os.listdir(self._path)  # noqa: PTH208  a hot path
                # Two changes within one tick of the file system's clock have the same mtime: trust only an old one.
                self._changed_at = changed_at if time.time_ns() - changed_at > CLOCK_TICK_NS else -1
        except OSError:
            return []
        return self._names

    def forget(self, owner: str) -> None:
        with contextlib.suppress(OSError):  # a socket that cannot be removed is skipped at every send
            (self._directory / owner).unlink()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send_to(self, name: str, message: bytes) -> None:
        try:
            with reachable(self._directory) as base:
                self._sender().sendto(message, f"{base}/{name}")
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:  # its process died without cleaning up
                self.forget(name)

    def _sender(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        return self._socket


def topics(message: bytes) -> frozenset[str]:
    return frozenset(message.decode(errors="replace").split())
