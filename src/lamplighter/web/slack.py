"""What Slack sends over HTTP: `POST /slack/events` and `POST /slack/interactions`.

The raw bytes are verified before anything is parsed.
A stranger is told nothing of the city: the reason of a refusal is logged.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lamplighter.domain.slack.manifest import EVENTS_PATH, INTERACTIONS_PATH
from lamplighter.kit import log
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.services.deliveries.receiving import json_of
from lamplighter.services.slack.receiving import NotSlack, SlackReceiver
from lamplighter.services.slack.workspaces import Workspace
from lamplighter.web.bodies import bounded
from lamplighter.web.errors import CONNECTION, REQUEST_ID, TooMany, problem
from lamplighter.web.hooks import NotTaken, NotTheSender
from lamplighter.web.rates import Rates

Handle = Callable[[Workspace, dict[str, str], bytes], Awaitable[Response]]


def routes(receiver: SlackReceiver, clock: Callable[[], float]) -> list[Route]:
    rates = Rates(clock)

    async def pressed(workspace: Workspace, headers: dict[str, str], body: bytes) -> Response:
        """200 once what the press stands for is committed, or refused."""
        _, payload = json_of(headers, body)
        await receiver.pressed(workspace.row.team, payload)
        return Response(status_code=200)

    async def told(workspace: Workspace, headers: dict[str, str], body: bytes) -> Response:
        """200 once what the event tells is committed; the challenge by which Slack tries the address is given back."""
        _, payload = json_of(headers, body)
        if payload.get("type") == "url_verification":
            return JSONResponse({"challenge": str(payload.get("challenge", ""))[:1000]})
        await receiver.told(workspace, payload)
        return Response(status_code=200)

    def verified(handle: Handle) -> Callable[[Request], Awaitable[Response]]:
        async def receive(request: Request) -> Response:
            body = await bounded(request)
            headers = {key: value for key, value in request.headers.items()}  # noqa: C416  names in small letters
            try:
                workspace = await receiver.proved(headers, body)
                rates.count(workspace.row.team)
                return await handle(workspace, headers, body)
            except (TooMany, UsageError) as error:  # only for a sender that was verified
                return problem(error, request.scope.get(REQUEST_ID))
            except NotSlack as error:
                return _refused(request, "slack.refused", error, NotTheSender())
            except LampError as error:
                return _refused(request, "slack.failed", error, NotTaken())

        return receive

    return [
        Route(EVENTS_PATH, verified(told), methods=["POST"]),
        Route(INTERACTIONS_PATH, verified(pressed), methods=["POST"]),
    ]


def _refused(request: Request, event: str, error: LampError, told: LampError) -> Response:
    """Log the reason, counted where it repeats, and answer without it."""
    tell = request.scope[CONNECTION].tell if CONNECTION in request.scope else log.get().warning
    tell(event, reason=error.message)
    return problem(told, request.scope.get(REQUEST_ID))
