"""Signing in and out: by a link that works once, by a token that is pasted, or at an OpenID provider."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from lamplighter.domain.access import Actor, Forbidden, Role, Unauthenticated
from lamplighter.kit import log
from lamplighter.kit.errors import LampError
from lamplighter.web.auth import COOKIE_SECRET, SIGN_IN, BrowserAuth, CrossSite, Stored, Tokens, is_own_page
from lamplighter.web.bodies import bounded
from lamplighter.web.console.provider_sign_in import COOKIE, RETURN, ProviderSignIn
from lamplighter.web.console.visit import back, own_path, rendered
from lamplighter.web.errors import problem, status_of
from lamplighter.web.hosts import Reached, is_secure
from lamplighter.web.prefix import PREFIX

LASTS = 30 * 86400
LARGEST_FORM = 16 << 10


@dataclass(frozen=True)
class SignIn:
    tokens: Tokens
    browsers: BrowserAuth
    reached: Callable[[], Reached]
    stored: Stored | None = None
    elsewhere: ProviderSignIn | None = None

    async def page(self, request: Request, now: datetime) -> Response:
        return self._page(request, now, own_path(request.query_params.get("next")))

    async def at_provider(self, request: Request, now: datetime) -> Response:
        if self.elsewhere is None or not self.elsewhere.name:
            return self._page(request, now, "/", "This city has no OpenID provider: `[oidc]` names none.", 404)
        try:
            return await self.elsewhere.begin(request, self._base(request), now)
        except LampError as error:
            log.get().warning("sign_in.failed", reason=error.message)
            return self._page(request, now, "/", "The provider cannot be asked now. The city's log tells why.", 503)

    async def from_provider(self, request: Request, now: datetime) -> Response:
        if self.elsewhere is None or not self.elsewhere.name:
            return self._page(request, now, "/", "This city has no OpenID provider: `[oidc]` names none.", 404)
        try:
            actor, wanted = await self.elsewhere.returned(request, now)
        except (Unauthenticated, Forbidden) as error:
            log.get().warning("sign_in.refused", reason=error.message)
            return self._page(request, now, "/", f"{error.message} {error.hint}", status_of(error))
        except LampError as error:
            log.get().warning("sign_in.failed", reason=error.message)
            return self._page(request, now, "/", "The provider cannot be asked now. The city's log tells why.", 503)
        answer = self._signed_in(request, actor, wanted)
        answer.delete_cookie(COOKIE, path=f"{request.scope.get(PREFIX, '')}{RETURN}")
        return answer

    async def by_link(self, request: Request, now: datetime) -> Response:
        """A browser that fetches the page ahead of a click must not use the link up."""
        purpose = request.headers.get("sec-purpose") or request.headers.get("purpose") or ""
        if request.method != "GET" or "prefetch" in purpose:
            return Response(status_code=204)
        actor = self.browsers.sessions.redeem(request.path_params["secret"])
        if actor is None:
            return self._page(request, now, "/", "This link was used already, or is older than ten minutes.", 401)
        return self._signed_in(request, actor, "/")

    async def by_token(self, request: Request, now: datetime) -> Response:
        if not is_own_page(request.headers):
            return problem(CrossSite())
        form = _fields(await bounded(request, LARGEST_FORM))
        wanted = own_path(form.get("next"))
        try:
            actor = await self._shown(form.get("token", "").strip())
            wrong = "This token is not known here." if actor is None else ""
        except LampError as error:  # it was revoked or has ended, or the database is away
            actor, wrong = None, f"{error.message} {error.hint}"
        if actor is not None and actor.role is Role.RUN:
            wrong = "This is not a token of a person."
        if actor is None or wrong:
            return self._page(request, now, wanted, wrong, 401)
        return self._signed_in(request, actor, wanted)

    async def _shown(self, token: str) -> Actor | None:
        """Raises TokenVoid, StoreUnavailable."""
        found = self.tokens.actor(token)
        return found if found is not None or self.stored is None else await self.stored.actor(token)

    async def out(self, request: Request, _now: datetime) -> Response:
        secret = request.scope.get(COOKIE_SECRET)
        if secret is not None:
            self.browsers.sessions.end(secret)
        answer = back(SIGN_IN)
        answer.delete_cookie(self._cookie(request), path="/")
        return answer

    def _page(self, request: Request, now: datetime, wanted: str, wrong: str = "", status: int = 200) -> Response:
        provider = self.elsewhere.name if self.elsewhere is not None else ""
        return rendered(request, "sign_in.html", now, status=status, wanted=wanted, wrong=wrong, provider=provider)

    def _base(self, request: Request) -> str:
        """The address under which the browser has come: `Host` was found to be one of the city's own."""
        scheme = "https" if self._secure(request) else "http"
        return f"{scheme}://{request.headers.get('host')}{request.scope.get(PREFIX, '')}"

    def _signed_in(self, request: Request, actor: Actor, wanted: str) -> Response:
        secret = self.browsers.sessions.begin(actor)
        answer = back(wanted)
        answer.set_cookie(
            self._cookie(request), secret, max_age=LASTS, path="/", httponly=True, samesite="lax",
            secure=self._secure(request),
        )  # fmt: skip
        return answer

    def _secure(self, request: Request) -> bool:
        return is_secure(request.headers.get("host"), self.reached())

    def _cookie(self, request: Request) -> str:
        return self.browsers.cookie_name(secure=self._secure(request))


def _fields(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
