"""Authentication: turns a bearer token, or the cookie of a browser that has signed in, into an actor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lamplighter.domain.access import Actor, Forbidden, Unauthenticated
from lamplighter.kit.errors import LampError, Unavailable
from lamplighter.kit.records import changed
from lamplighter.web.errors import CONNECTION, REQUEST_ID, problem

ACTOR = "lamp.actor"
COOKIE_SECRET = "lamp.cookie"  # noqa: S105  the key of the scope, not a secret
SESSION = "lamp-session-id"
SIGN_IN = "/sign-in"
_POLICY = 1008  # the close code of a web socket (policy violation) in place of 401
_SAFE = frozenset({"GET", "HEAD"})


class Tokens(Protocol):
    def actor(self, token: str) -> Actor | None: ...


class Stored(Protocol):
    """Asks the store about the tokens of members."""

    async def actor(self, token: str) -> Actor | None:
        """Who shows a token; None for nobody. Raises Unauthenticated, Unavailable."""
        ...

    async def holder(self, signed_in: Actor) -> Actor:
        """The member whose token a browser was signed in with, as they are now. Raises Unauthenticated, Unavailable."""
        ...


class Browsers(Protocol):
    """Who is signed in with a browser; a session and a one-time link are each known by their secret."""

    def link(self, actor: Actor) -> str: ...

    def redeem(self, secret: str) -> Actor | None:
        """The actor of a link, which cannot be used again."""
        ...

    def begin(self, actor: Actor) -> str: ...

    def actor(self, secret: str) -> Actor | None: ...

    def end(self, secret: str) -> None: ...


class Policy(Enum):
    """What a route asks of a request. A bearer token is good for every one of them."""

    OPEN = auto()
    """Nothing."""
    TOKEN = auto()
    """A bearer token: browsers never send one by themselves, so no other site can make them ask."""
    COOKIE = auto()
    """A bearer token or the cookie of a browser; without either 401."""
    PAGE = auto()
    """The same; a browser that has not signed in is sent to do so."""


@dataclass(frozen=True)
class BrowserAuth:
    """The cookie is called after the city: cities on one machine share a host name, and cookies know no port.

    Over HTTPS its name has the prefix with which browsers refuse it from any other place than this host itself.
    """

    sessions: Browsers
    city: str

    def cookie_name(self, *, secure: bool) -> str:
        return f"__Host-lamp-{self.city}" if secure else f"lamp-{self.city}"


class CrossSite(Forbidden):
    def __init__(self) -> None:
        LampError.__init__(
            self,
            "The request does not come from a page of this city.",
            hint="Use the console's own forms; programs send `Authorization: Bearer TOKEN` instead of a cookie.",
        )


class Authenticate:
    """Passes on requests with a token or cookie that is known; answers all others without reading their body."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        *,
        policy: Callable[[str], Policy],
        browsers: BrowserAuth | None = None,
        is_secure: Callable[[str | None], bool] = lambda _host: False,
        stored: Stored | None = None,
    ) -> None:
        """`is_secure`: whether the address in `Host` is one that is reached over HTTPS."""
        self._app = app
        self._tokens = tokens
        self._policy = policy
        self._browsers = browsers
        self._is_secure = is_secure
        self._stored = stored

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        policy = Policy.OPEN if scope["type"] == "lifespan" else self._policy(scope["path"])
        if policy is Policy.OPEN:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            actor = self._actor(scope, headers, policy) or await self._of_store(headers)
            actor = await self._as_now(actor, scope)
        except LampError as error:  # another site asks; or a token was revoked or has ended, or the database is away
            if scope["type"] == "http":
                await problem(error, scope.get(REQUEST_ID))(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": _POLICY})
            return
        if actor is not None:
            scope[ACTOR] = actor
            if CONNECTION in scope:
                scope[CONNECTION].trust()
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _refused(scope, headers, policy)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": _POLICY})

    async def _of_store(self, headers: Headers) -> Actor | None:
        """The member whose token is shown. Raises TokenVoid, StoreUnavailable."""
        token = _bearer(headers)
        actor = None if token is None or self._stored is None else await self._stored.actor(token)
        return None if actor is None else changed(actor, session=headers.get(SESSION) or None)

    async def _as_now(self, actor: Actor | None, scope: Scope) -> Actor | None:
        """Whoever signed in with a member's token is what that member is now; nobody, if the token is void.

        While the store is away they stay what they were: pages say that it is, and nothing else is answered.
        """
        if actor is None or actor.token is None or COOKIE_SECRET not in scope or self._stored is None:
            return actor
        try:
            return await self._stored.holder(actor)
        except Unavailable:
            return actor
        except Unauthenticated:
            return None

    def _actor(self, scope: Scope, headers: Headers, policy: Policy) -> Actor | None:
        """Raises CrossSite for a change or a web socket that a browser asks for from a page of another site."""
        token = _bearer(headers)
        if token is not None:
            actor = self._tokens.actor(token)
            return None if actor is None else changed(actor, session=headers.get(SESSION) or None)
        if self._browsers is None or policy is Policy.TOKEN:
            return None
        secret = cookie_in(headers, self._browsers.cookie_name(secure=self._is_secure(headers.get("host"))))
        actor = None if secret is None else self._browsers.sessions.actor(secret)
        if actor is not None:
            if scope.get("method") not in _SAFE and not is_own_page(headers):
                raise CrossSite
            scope[COOKIE_SECRET] = secret
        return actor


def is_own_page(headers: Headers) -> bool:
    """Whether a browser says that a page of this city asks.

    `OwnSites` has refused every foreign `Origin` already; a browser that sends neither header is too old to be trusted
    with a cookie.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    return headers.get("origin") is not None


def actor_in(scope: Mapping[str, Any]) -> Actor:
    found: Actor = scope[ACTOR]
    return found


def cookie_in(headers: Headers, name: str) -> str | None:
    """The value of a cookie; None if it is missing, or if it comes twice and nobody knows which one is meant."""
    found: list[str] = []
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                found.append(value.strip('"'))
    return found[0] if len(found) == 1 and found[0] else None


def _refused(scope: Scope, headers: Headers, policy: Policy) -> Response:
    if policy is Policy.PAGE and scope["method"] in _SAFE and "authorization" not in headers:
        asked = scope["path"] + (
            f"?{scope['query_string'].decode('ascii', 'replace')}" if scope["query_string"] else ""
        )
        where = SIGN_IN if asked == "/" else f"{SIGN_IN}?next={quote(asked, safe='')}"
        return RedirectResponse(where, status_code=303, headers={"Cache-Control": "no-store"})
    return problem(Unauthenticated(), scope.get(REQUEST_ID))


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
