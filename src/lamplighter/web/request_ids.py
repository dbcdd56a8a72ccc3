"""An id for each request, in its answer and in the log, so that the two can be put together."""

import re
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamplighter.kit.ids import CHANCE
from lamplighter.web.errors import REQUEST_ID, REQUEST_ID_HEADER

_HEADER = REQUEST_ID_HEADER.lower().encode()
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


def new_id() -> str:
    return f"req_{CHANCE(12).hex()}"


def id_of(scope: Scope, make: Callable[[], str] = new_id) -> str:
    """The client's, where it is a plain word; else a new one."""
    said = next((value for name, value in scope["headers"] if name == _HEADER), b"").decode("latin-1")
    return said if _USABLE.fullmatch(said) else make()


class RequestIds:
    """Takes the client's `X-Request-Id` where it is a plain word, else makes one."""

    def __init__(self, app: ASGIApp, make: Callable[[], str] = new_id) -> None:
        self._app = app
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = id_of(scope, self._make)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        await self._app(scope, receive, marked)
