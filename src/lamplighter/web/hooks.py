"""Deliveries over HTTP: `POST /hooks/{connection}`. The raw bytes are verified before anything of them is parsed.

A stranger is told neither which connections there are nor how the city is: the reason of a refusal is logged.
"""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lamplighter.domain.access import Unauthenticated
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, Unavailable, UsageError
from lamplighter.services.deliveries.receiving import ConnectionUnknown, NotVerified, Receiver
from lamplighter.web.bodies import BodiesFull, Room
from lamplighter.web.errors import CONNECTION, REQUEST_ID, TooMany, problem
from lamplighter.web.rates import Rates

PATH = "/hooks/{connection}"
LONGEST_NAME = 64
MOST_BYTES = 256 << 20
"""What the bodies of a connection may have together in a minute."""


class NotProved(Unauthenticated):
    def __init__(self) -> None:
        LampError.__init__(
            self, "The delivery is not proved to be for a connection of this city.", hint="The city's log tells why."
        )


class NotTaken(Unavailable):
    def __init__(self) -> None:
        super().__init__("The delivery cannot be taken now.", hint="Send it again later; the city's log tells why.")


def route(receiver: Receiver, clock: Callable[[], float], room: Room | None = None) -> Route:
    door = _Door(receiver, Rates(clock), Rates(clock, most=MOST_BYTES, what="bytes"))
    together = room or Room()

    async def receive(request: Request) -> Response:
        """202 once the delivery is committed; 401 for one that is not verified, 429 for too many that are.

        503 while the store or the secret cannot be read, or while too many bodies are on their way.
        """
        name = str(request.path_params["connection"])[:LONGEST_NAME]
        try:
            async with together.body(request) as body:  # first, so that 413 comes for every name, or for none
                return await door.take(request, name, body)
        except BodiesFull as error:
            return _refused(request, "hooks.full", name, error, NotTaken())

    return Route(PATH, receive, methods=["POST"])


@dataclass(frozen=True)
class _Door:
    """Counts only what was verified, so that a stranger does not use up a sender's rate."""

    receiver: Receiver
    rates: Rates
    sizes: Rates

    async def take(self, request: Request, name: str, body: bytes) -> Response:
        try:
            source = await self.receiver.source(name)
            headers = {key: value for key, value in request.headers.items()}  # noqa: C416  names in small letters
            got = await self.receiver.receive(source, headers, body, lambda: self._count(name, len(body)))
        except (TooMany, UsageError) as error:  # only for a sender that was verified
            answer = problem(error, request.scope.get(REQUEST_ID))
            if isinstance(error, TooMany):
                over = self.sizes if error.what == self.sizes.what else self.rates
                answer.headers.update(over.headers(name, refused=True))
            return answer
        except (ConnectionUnknown, NotVerified) as error:
            return _refused(request, "hooks.refused", name, error, NotProved())
        except LampError as error:
            return _refused(request, "hooks.failed", name, error, NotTaken())
        return JSONResponse({"id": got.id, "repeated": got.repeated}, status_code=202)

    def _count(self, name: str, size: int) -> None:
        """Raises TooMany."""
        self.rates.count(name)
        self.sizes.count(name, size)


def _refused(request: Request, event: str, connection: str, error: LampError, told: LampError) -> Response:
    """Log the reason, counted where it repeats, and answer without it."""
    tell = request.scope[CONNECTION].tell if CONNECTION in request.scope else log.get().warning
    tell(event, connection=connection, reason=error.message)
    return problem(told, request.scope.get(REQUEST_ID))
