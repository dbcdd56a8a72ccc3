"""Errors as HTTP answers: maps error kinds to statuses, and errors to problem JSON."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lamplighter.domain.access import Forbidden, Unauthenticated
from lamplighter.kit import log
from lamplighter.kit.errors import Kind, LampError

CONNECTION = "lamp.connection"
"""The key of a request's connection in its scope; it is told of valid tokens, and counts repeated log events."""
MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[Kind, int] = {
    Kind.NO: 422,
    Kind.USAGE: 400,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.UNAVAILABLE: 503,
    Kind.GONE: 503,
}


def status_of(error: LampError) -> int:
    match error:
        case Unauthenticated():
            return 401
        case Forbidden():
            return 403
        case _:
            return STATUS[error.kind]


def problem(error: LampError) -> Response:
    status = status_of(error)
    code = getattr(error, "code", error.kind.value)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "1"} if status == 503 else {}
    return _told(status, str(code), type(error).__name__, error.message, error.hint, headers)


async def on_lamp_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, LampError):
        raise error
    return problem(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an HTTPException: an unknown path, a method that is not allowed, a body that is too large."""
    if not isinstance(error, HTTPException):
        raise error
    detail = f"{request.method} {request.url.path}: {error.detail}."
    return _told(error.status_code, "http", error.detail, detail, "", dict(error.headers or {}))


async def on_client_left(request: Request, _error: Exception) -> Response:
    """Log that the client hung up before its request was read; the returned answer reaches no one."""
    if CONNECTION in request.scope:
        request.scope[CONNECTION].tell("web.client_left", path=request.url.path[:200])
    return Response(status_code=499)


async def on_bug(request: Request, error: Exception) -> Response:
    log.get().error("web.failed", path=request.url.path[:200], exc_info=error)
    return _told(500, "bug", "InternalError", "Something went wrong here.", "The log of the daemon tells what.", {})


def _told(status: int, kind: str, title: str, detail: str, hint: str, headers: Mapping[str, str]) -> Response:
    body: dict[str, Any] = {"type": kind, "title": title, "detail": detail, "hint": hint, "status": status}
    return JSONResponse(body, status_code=status, headers=dict(headers), media_type=MEDIA_TYPE)
