"""The client of the control socket, which answers only the user who runs the city, and root.

A request is one line: a JSON object such as `{"verb": "stop"}`, answered by a JSON line; or the plain word `stop`,
answered by the line `ok` or by `error: ` and the reason. The other verbs exist only as JSON: their answers hold more.
"""

import json
import socket
from pathlib import Path
from typing import Any

from lamplighter.kit import json_text
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.sockets import reachable

READ_SECONDS = 10.0
NOT_A_REQUEST = "This is not a request"
"""How the answer to a verb begins that the controller does not know."""


class VerbFailed(Unavailable):
    """The controller took the request and failed at it; other errors mean that it did not take it."""


def ask(path: Path, verb: str, *, within: float = READ_SECONDS, **fields: Any) -> dict[str, Any]:
    """Send one request and return its answer; needs no event loop. Raises Unavailable if that fails."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(within)
            with reachable(path.parent) as base:
                connection.connect(f"{base}/{path.name}")
            connection.sendall(json.dumps({"verb": verb, **fields}).encode() + b"\n")
            answer = _read_line(connection)
        if not answer:
            raise Unavailable(
                "The controller ended before it answered.",
                hint="`lamp status` tells whether it runs; ask again once it does.",
            )
        reply: dict[str, Any] = json_text.parse(answer)
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"The controller did not answer on {path}: {error}.", hint="`lamp status` tells whether it runs."
        ) from error
    if "error" in reply:
        kind = VerbFailed if reply.get("failed") else Unavailable
        raise kind(str(reply["error"]), hint="`lamp status` tells how the controller is.")
    return reply


def _read_line(connection: socket.socket) -> bytes:
    parts = []
    while chunk := connection.recv(65536):
        parts.append(chunk)
        if chunk.endswith(b"\n"):
            break
    return b"".join(parts)
