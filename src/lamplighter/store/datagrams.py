"""Wake-ups between the processes of a city on one machine: a datagram to every socket in `.gc/wake/`.

A datagram is a hint and may be lost: a full or vanished socket is passed over, and whoever waits polls as well.
"""

import contextlib
import errno
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from lamplighter.kit.sockets import reachable
from lamplighter.store.errors import StoreUnavailable


class Datagrams:
    """The sending end; cheap when nobody listens."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket: socket.socket | None = None
        self._own: str | None = None

    def send(self, topics: Iterable[str]) -> None:
        message = " ".join(sorted(topics)).encode()
        if not message:
            return
        try:
            names = [name for name in os.listdir(self._directory) if name != self._own]  # noqa: PTH208  a hot path
        except OSError:
            return
        for name in names:
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
        self._own = owner
        return receiver

    def forget(self, owner: str) -> None:
        with contextlib.suppress(OSError):  # what cannot be removed is passed over each time
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
