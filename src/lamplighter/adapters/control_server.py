"""The server of the control socket; the requests that it answers are described with their client."""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from lamplighter.adapters.control import NOT_A_REQUEST, READ_SECONDS
from lamplighter.kit import json_text, log
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.repeats import Repeats
from lamplighter.kit.sockets import reachable

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
LONGEST_LINE = 1 << 22
PLAIN_STOP = b"stop"


class ControlServer:
    """Serves verbs until closed. A request that is late, malformed or too long is answered with an error."""

    def __init__(self, path: Path, verbs: Mapping[str, Handler]) -> None:
        self._path = path
        self._verbs = verbs
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Replace a socket left by a dead controller; the caller holds the controller's lock. Raises Unavailable."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            _bind_private(listener, self._path)
        except OSError as error:
            listener.close()
            raise Unavailable(
                f"The control socket {self._path} cannot be made: {error.strerror}.",
                hint="Move away what stands in its place; check the directory's owner, mode and disk.",
            ) from error
        listener.setblocking(False)
        self._tell = Repeats(asyncio.get_running_loop().call_later).tell
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=LONGEST_LINE)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(reader, writer)
            writer.write(answer.encode() + b"\n")
            await writer.drain()
        except (ConnectionError, TimeoutError):
            pass  # the caller has closed the connection; its request is carried out all the same
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        try:
            async with TimeLimit(READ_SECONDS):
                line = await reader.readline()
        except TimeoutError:
            return json.dumps({"error": "No request came in time."})
        except ValueError:  # longer than any request
            return json.dumps({"error": self._not_a_request()})
        plain = line.strip() == PLAIN_STOP
        told = await self._done(b'{"verb": "stop"}' if plain else line, writer)
        if not plain:
            return json.dumps(told)
        return f"error: {told['error']}" if "error" in told else "ok"

    def _not_a_request(self) -> str:
        return f"{NOT_A_REQUEST}; the verbs are {', '.join(self._verbs)}."

    async def _done(self, line: bytes, writer: asyncio.StreamWriter) -> Mapping[str, Any]:
        try:
            # Only now: a caller refused before its request was read sees the connection close, not the answer.
            if not _same_user(writer.get_extra_info("socket")):
                return {"error": "This socket answers only the user who runs the city."}
            request = json_text.parse(line)
            verb = request["verb"]
            handler = self._verbs[verb]
        except (ValueError, KeyError, TypeError):
            return {"error": self._not_a_request()}
        try:
            answer = await handler(request)
            if "problem" in answer:
                self._tell("control.refused", verb=verb, error=answer["problem"]["detail"][:200])
            return answer
        except LampError as error:
            self._tell("control.refused", verb=verb, error=error.message[:200])
            return {"error": f"{verb} failed: {error.message}", "failed": True}
        except Exception as error:  # noqa: BLE001  no failed request may end the daemon; the caller gets the error
            log.get().error("control.failed", verb=verb, exc_info=error)
            return {"error": f"{verb} failed: {error}", "failed": True}


def _bind_private(listener: socket.socket, path: Path) -> None:
    with reachable(path.parent) as base:
        before = os.umask(0o177)
        try:
            listener.bind(f"{base}/{path.name}")
        finally:
            os.umask(before)


def _same_user(connection: socket.socket) -> bool:
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        _pid, uid, _gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return uid in (os.geteuid(), 0)
    return True  # on other systems only the socket's mode 0600 keeps other users out
