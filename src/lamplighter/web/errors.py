"""Errors as HTTP answers: maps error kinds to statuses, and errors to problem JSON."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lamplighter.domain.access import Forbidden, Unauthenticated
from lamplighter.kit import log
from lamplighter.kit.errors import Kind, LampError, UsageError
from lamplighter.services.guarding import VersionChanged

CONNECTION = "lamp.connection"
"""The key of a request's connection in its scope; it is told of valid tokens, and counts repeated log events."""
MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "lamp.request_id"
"""The key of a request's id in its scope."""
REQUEST_ID_HEADER = "X-Request-Id"
STATUS: Mapping[Kind, int] = {
    Kind.NO: 422,
    Kind.USAGE: 400,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.UNAVAILABLE: 503,
    Kind.GONE: 503,
}


class TooMany(LampError):
    kind = Kind.UNAVAILABLE

    def __init__(self, most: int, seconds: int, what: str = "requests") -> None:
        self.what = what
        super().__init__(
            f"More than {most} {what} came with this token within {seconds} seconds.",
            hint="Ask again after the seconds that `Retry-After` names, and more slowly.",
        )


def status_of(error: LampError) -> int:
    match error:
        case Unauthenticated():
            return 401
        case Forbidden():
            return 403
        case VersionChanged():
            return 412
        case TooMany():
            return 429
        case _:
            return STATUS[error.kind]


def problem(error: LampError, request_id: str | None = None) -> Response:
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "1"} if status in (429, 503) else {}
    return _answer(told(error), request_id, headers)


def told(error: LampError) -> dict[str, Any]:
    """The error as problem JSON; `errors` has the single values that are wrong, where that is known."""
    code = str(getattr(error, "code", error.kind.value))
    body = _body(status_of(error), code, type(error).__name__, error.message, error.hint)
    misfits = error.misfits if isinstance(error, UsageError) else ()
    if misfits:
        body["errors"] = [{"pointer": one.pointer, "detail": one.told} for one in misfits]
    return body


async def on_lamp_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, LampError):
        raise error
    return problem(error, request.scope.get(REQUEST_ID))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an HTTPException: an unknown path, a method that is not allowed, a body that is too large."""
    if not isinstance(error, HTTPException):
        raise error
    detail = f"{request.method} {request.url.path}: {error.detail}."
    body = _body(error.status_code, "http", error.detail, detail, "")
    return _answer(body, request.scope.get(REQUEST_ID), dict(error.headers or {}))


async def on_client_left(request: Request, _error: Exception) -> Response:
    """Log that the client hung up before its request was read; the returned answer reaches no one."""
    if CONNECTION in request.scope:
        request.scope[CONNECTION].tell("web.client_left", path=request.url.path[:200])
    return Response(status_code=499)


async def on_bug(request: Request, error: Exception) -> Response:
    request_id = request.scope.get(REQUEST_ID)
    log.get().error("web.failed", path=request.url.path[:200], request_id=request_id, exc_info=error)
    body = _body(500, "bug", "InternalError", "Something went wrong here.", "The log of the daemon tells what.")
    return _answer(body, request_id, {REQUEST_ID_HEADER: request_id} if request_id else {})


def _body(status: int, kind: str, title: str, detail: str, hint: str) -> dict[str, Any]:
    return {"type": kind, "title": title, "detail": detail, "hint": hint, "status": status}


def _answer(body: dict[str, Any], request_id: str | None, headers: Mapping[str, str]) -> Response:
    if request_id is not None:
        body["instance"] = request_id
    return JSONResponse(body, status_code=body["status"], headers=dict(headers), media_type=MEDIA_TYPE)
