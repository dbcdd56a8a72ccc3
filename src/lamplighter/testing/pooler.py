"""A pooler before PostgreSQL: each transaction gets any free session, as in PgBouncer's mode `transaction`."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
CHUNK = 65536


class _Sessions:
    """The free sessions of the server; the one that was returned last is taken first."""

    def __init__(self, server: Path) -> None:
        self._server = server / SOCKET
        self._free: list[socket.socket] = []
        self._lock = threading.Lock()

    def new(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.connect(str(self._server))
        return made

    def take(self) -> socket.socket | None:
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, session: socket.socket) -> None:
        with self._lock:
            self._free.append(session)

    def close(self) -> None:
        for session in self._free:
            session.close()


def _serve(client: socket.socket, sessions: _Sessions) -> None:
    """Serve one client: its start-up opens a session, which then joins the pool; each transaction takes a free one."""
    started: bytes | None = None
    with client, suppress(OSError):
        while data := client.recv(CHUNK):
            if started is None:
                started = data
                session: socket.socket | None = sessions.new()
            elif data[:1] == b"X":
                return
            else:
                session = sessions.take()
                if session is None:
                    session = sessions.new()
                    session.sendall(started)
                    _answer(session)
            if session is not None:
                _transaction(client, session, sessions, data)


def _transaction(client: socket.socket, session: socket.socket, sessions: _Sessions, data: bytes) -> None:
    """The session is free before the client hears of the end: else the next transaction might not get it."""
    session.sendall(data)
    said, state = _answer(session)
    while state != b"I":
        client.sendall(said)
        session.sendall(client.recv(CHUNK))
        said, state = _answer(session)
    sessions.give_back(session)
    client.sendall(said)


def _answer(session: socket.socket) -> tuple[bytes, bytes]:
    """What the server sends until it is ready, and its state, `I` outside a transaction. Raises OSError."""
    said = pending = b""
    while data := session.recv(CHUNK):
        said += data
        pending += data
        while len(pending) >= 5:
            length = struct.unpack("!i", pending[1:5])[0] + 1
            if len(pending) < length:
                break
            kind, state, pending = pending[:1], pending[5:6], pending[length:]
            if kind == b"Z":
                return said, state
    raise OSError("the server went away")


@contextmanager
def transaction_pooler(home: Path, server: Path) -> Iterator[None]:
    """Listens in `home`, which a client's URL gives as its host."""
    sessions = _Sessions(server)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home / SOCKET))
    listener.listen(64)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_serve, args=(client, sessions), daemon=True).start()

    threading.Thread(target=accept, name="pooler", daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        sessions.close()
