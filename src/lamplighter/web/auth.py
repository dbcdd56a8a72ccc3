"""Authentication: turns a bearer token into a caller."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamplighter.domain.access import Caller, Unauthenticated
from lamplighter.web.errors import CONNECTION, problem

CALLER = "lamp.caller"
SESSION = "lamp-session-id"
_POLICY = 1008  # the close code of a web socket (policy violation) in place of 401


class Tokens(Protocol):
    def caller(self, token: str) -> Caller | None: ...


class Authenticate:
    """Passes on requests with a token that `tokens` knows; answers all others with 401 without reading their body."""

    def __init__(self, app: ASGIApp, tokens: Tokens, *, open_paths: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._open = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in self._open:
            await self._app(scope, receive, send)
            return
        token = _bearer(Headers(scope=scope))
        caller = None if token is None else self._tokens.caller(token)
        if caller is not None:
            scope[CALLER] = caller
            if CONNECTION in scope:
                scope[CONNECTION].trust()
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await problem(Unauthenticated())(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": _POLICY})


def caller_in(scope: Mapping[str, Any]) -> Caller:
    found: Caller = scope[CALLER]
    return found


def session_in(scope: Scope) -> str | None:
    """The id of the session that sent the request, if its header names one."""
    return Headers(scope=scope).get(SESSION) or None


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
