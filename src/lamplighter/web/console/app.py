"""The console as one application: its routes, its files, and how a failure becomes a page."""

import contextlib
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from lamplighter.kit import log
from lamplighter.kit.errors import LampError, NotFound
from lamplighter.services.city_operations import CityOperations
from lamplighter.web.auth import SIGN_IN
from lamplighter.web.console.pages import (
    agents,
    automations,
    bulk,
    deliveries,
    editing,
    home,
    inbox,
    more,
    runs,
    search,
    settings,
)
from lamplighter.web.console.provider_sign_in import BEGIN, RETURN
from lamplighter.web.console.sign_in import SignIn
from lamplighter.web.console.visit import HEADERS, HERE, Page, Visit, error_page, version_of

FILES = frozenset(
    {"console.css", "console.js", "lamp.svg", "lamp.webmanifest", "terminal.js", "xterm.mjs", "xterm.css"}
)
PAGES: tuple[tuple[str, str, Page], ...] = (
    *home.PAGES, *inbox.PAGES, *runs.PAGES, *bulk.PAGES, *editing.PAGES, *automations.PAGES, *agents.PAGES, *more.PAGES,
    *deliveries.PAGES, *search.PAGES, *settings.PAGES,
)  # fmt: skip
"""Method, path and function of every page and button."""
Unknown = Callable[[Request, datetime], Awaitable[Response]]


class Bug(LampError):
    def __init__(self) -> None:
        super().__init__("Something went wrong here.", hint="The log of the daemon tells what: `lamp daemon logs`.")


class Console:
    def __init__(self, city: CityOperations, sign_in: SignIn) -> None:
        self._city = city
        anyone = [
            ("GET", SIGN_IN, sign_in.page),
            ("POST", SIGN_IN, sign_in.by_token),
            ("GET", BEGIN, sign_in.at_provider),
            ("GET", RETURN, sign_in.from_provider),
            ("GET", f"{SIGN_IN}/{{secret}}", sign_in.by_link),
            ("POST", "/sign-out", sign_in.out),
        ]
        self._router = Router(
            routes=[
                Route("/console/{name}", _file, methods=["GET"]),
                *(Route(path, self._plain(page), methods=[method]) for method, path, page in anyone),
                *(Route(path, self._visited(page), methods=[method]) for method, path, page in PAGES),
            ],
            redirect_slashes=False,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            if error.status_code != 404:
                raise
            missing = NotFound(f"There is no page {request.url.path[:200]}.", hint="Go to the start page.")
            await error_page(request, missing, self._city.clock.now())(scope, receive, send)

    def _plain(self, page: Unknown) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await page(request, self._city.clock.now())

        return endpoint

    def _visited(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            now = self._city.clock.now()
            visit = Visit(self._city, request, now)
            try:
                return await page(visit)
            except LampError as error:
                return error_page(request, error, now)
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001  a person gets a page, the log gets the rest
                log.get().error("web.failed", path=request.url.path[:200], exc_info=error)
                return error_page(request, Bug(), now, status=500)

        return endpoint


_KINDS = {".mjs": "text/javascript", ".webmanifest": "application/manifest+json"}
"""Of files that not every machine knows the kind of."""


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    path = HERE / "static" / name
    if name not in FILES or not path.is_file():
        raise HTTPException(404)
    is_current = request.query_params.get("v") == version_of(name)
    kept = "public, max-age=31536000, immutable" if is_current else "no-cache"
    kind = _KINDS.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(path.read_bytes(), media_type=kind, headers={**HEADERS, "Cache-Control": kept})
