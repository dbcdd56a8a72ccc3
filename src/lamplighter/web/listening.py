"""Binds the listening socket before its address is published; separate from the server, which is slow to load."""

import socket

from lamplighter.kit.errors import Unavailable

BACKLOG = 2048


def bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Raises Unavailable if the address cannot be bound. `shared` lets other processes of this user listen too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
        found.setblocking(False)
    except (OSError, OverflowError) as error:
        found.close()
        raise Unavailable(
            f"{host}:{port} cannot be listened on: {getattr(error, 'strerror', None) or error}.",
            hint="Set another `[api] port`, or 0 for a free one.",
        ) from error
    return found


def url_of(found: socket.socket) -> str:
    host, port = found.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
