"""Deliveries over HTTP: `POST /hooks/{connection}`. The raw bytes are verified before anything of them is parsed.

A stranger is told neither which connections there are nor how the city is: the reason of a refusal is logged. The route
stands before those of the framework, whose layers would cost more than all that a delivery needs.
"""

import json
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lamplighter.domain.access import Unauthenticated
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, Unavailable, UsageError
from lamplighter.services.deliveries.receiving import ConnectionUnknown, NotVerified, Receiver
from lamplighter.web.bodies import BodiesFull, Room
from lamplighter.web.errors import (
    CONNECTION,
    REQUEST_ID,
    REQUEST_ID_HEADER,
    TooMany,
    on_client_left,
    on_http_error,
    problem,
)
from lamplighter.web.hosts import Reached, refused_site
from lamplighter.web.prefix import path_below, prefix_of
from lamplighter.web.rates import Rates
from lamplighter.web.request_ids import id_of

PREFIX = "/hooks/"
LONGEST_NAME = 64
MOST_BYTES = 256 << 20
"""What the bodies of a connection may have together in a minute."""


class NotTheSender(Unauthenticated):
    def __init__(self) -> None:
        LampError.__init__(
            self, "The delivery is not proved to be for a connection of this city.", hint="The city's log tells why."
        )


class NotTaken(Unavailable):
    def __init__(self) -> None:
        super().__init__("The delivery cannot be taken now.", hint="Send it again later; the city's log tells why.")


class Hooks:
    """Middleware: answers what is sent to a connection, and passes on everything else."""

    def __init__(self, app: ASGIApp, door: "Door", reached: Callable[[], Reached]) -> None:
        self._app = app
        self._door = door
        self._reached = reached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._path(scope) if scope["type"] == "http" else ""
        if not path.startswith(PREFIX) or "/" in path[len(PREFIX) :] or path == PREFIX:
            await self._app(scope, receive, send)
            return
        scope[REQUEST_ID] = id_of(scope)
        answer = refused_site(scope, self._reached()) or await self._answer(scope, receive, path[len(PREFIX) :])
        answer.headers[REQUEST_ID_HEADER] = scope[REQUEST_ID]
        await answer(scope, receive, send)

    def _path(self, scope: Scope) -> str:
        """Its path, without that of the public address."""
        path: str = scope["path"]
        if path.startswith(PREFIX):
            return path
        return path_below(path, prefix_of(self._reached().public_url)) or path

    async def _answer(self, scope: Scope, receive: Receive, name: str) -> Response:
        request = Request(scope, receive)
        if scope["method"] != "POST":
            return await on_http_error(request, HTTPException(405, headers={"Allow": "POST"}))
        try:
            return await self._door.receive(request, name[:LONGEST_NAME])
        except HTTPException as error:
            return await on_http_error(request, error)
        except ClientDisconnect as error:
            return await on_client_left(request, error)


class Door:
    """Counts only what was verified, so that a stranger does not use up a sender's rate."""

    def __init__(self, receiver: Receiver, clock: Callable[[], float]) -> None:
        self._receiver = receiver
        self._rates = Rates(clock)
        self._sizes = Rates(clock, most=MOST_BYTES, what="bytes")
        self._room = Room()

    async def receive(self, request: Request, name: str) -> Response:
        """202 once the delivery is committed; 401 for one that is not verified, 429 for too many that are.

        503 while the store or the secret cannot be read, or while too many bodies are on their way. Raises 413.
        """
        try:
            async with self._room.body(request.receive) as body:  # first, so that 413 comes for every name, or for none
                return await self._take(request, name, body)
        except BodiesFull as error:
            return _refused(request, "hooks.full", name, error, NotTaken())

    async def _take(self, request: Request, name: str, body: bytes) -> Response:
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in request.scope["headers"]}
        try:
            got = await self._receiver.receive(name, headers, body, lambda: self._count(name, len(body)))
        except (TooMany, UsageError) as error:  # only for a sender that was verified
            answer = problem(error, request.scope.get(REQUEST_ID))
            if isinstance(error, TooMany):
                over = self._sizes if error.what == self._sizes.what else self._rates
                answer.headers.update(over.headers(name, refused=True))
            return answer
        except (ConnectionUnknown, NotVerified) as error:
            return _refused(request, "hooks.refused", name, error, NotTheSender())
        except LampError as error:
            return _refused(request, "hooks.failed", name, error, NotTaken())
        told = {"id": got.id, "repeated": got.repeated}
        return Response(json.dumps(told, separators=(",", ":")), status_code=202, media_type="application/json")

    def _count(self, name: str, size: int) -> None:
        """Raises TooMany."""
        self._rates.count(name)
        self._sizes.count(name, size)


def _refused(request: Request, event: str, connection: str, error: LampError, told: LampError) -> Response:
    """Log the reason, counted where it repeats, and answer without it."""
    tell = request.scope[CONNECTION].tell if CONNECTION in request.scope else log.get().warning
    tell(event, connection=connection, reason=error.message)
    return problem(told, request.scope.get(REQUEST_ID))
