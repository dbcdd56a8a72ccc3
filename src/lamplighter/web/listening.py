"""A socket that is bound before anyone is told its address; apart from the server, which takes long to load."""

import socket

from lamplighter.kit.errors import Unavailable

BACKLOG = 2048


def bound(host: str, port: int) -> socket.socket:
    """Raises Unavailable for an address that cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
