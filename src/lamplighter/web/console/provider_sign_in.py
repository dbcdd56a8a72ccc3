"""Signing in at an OpenID provider: the browser is sent there, and comes back with a code."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lamplighter.domain.access import Actor, NotProved
from lamplighter.ports.identities import Asked, Client, IdentityProvider
from lamplighter.services.signing_in import address_of
from lamplighter.web.auth import SIGN_IN, cookie_in
from lamplighter.web.console.visit import own_path

BEGIN, RETURN = f"{SIGN_IN}/provider", f"{SIGN_IN}/provider/return"
COOKIE = "lamp-signing-in"
WITHIN = timedelta(minutes=10)
MOST = 1000
"""Sign-ins under way; when there are more, the oldest are forgotten."""


@dataclass(frozen=True)
class Settings:
    """What `[oidc]` says, with the client's secret opened."""

    client: Client
    domains: Sequence[str]


@dataclass(frozen=True)
class _Begun:
    asked: Asked
    wanted: str
    browser: str
    """What the cookie of the browser says, so that nobody can have another browser signed in as themselves."""
    until: datetime


@dataclass
class ProviderSignIn:
    provider: IdentityProvider
    issuer: Callable[[], str]
    """The address of the provider; empty where none is configured."""
    settings: Callable[[], Awaitable[Settings]]
    admit: Callable[[str, Settings, datetime], Awaitable[Actor]]
    """Makes a session's token for whoever has this address. Raises NoMember, StoreUnavailable."""
    _begun: dict[str, _Begun] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The host of the provider, for the button; empty where none is configured."""
        return urlsplit(self.issuer()).netloc

    async def begin(self, request: Request, base: str, now: datetime) -> Response:
        """Raises SecretUnknown, SecretLocked, Unavailable."""
        state, nonce, verifier, browser = (secrets.token_urlsafe(32) for _ in range(4))
        asked = Asked(f"{base}{RETURN}", state, nonce, verifier)
        address = await self.provider.address((await self.settings()).client, asked)
        self._forget(now)
        self._begun[state] = _Begun(asked, own_path(request.query_params.get("next")), browser, now + WITHIN)
        answer = RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})
        seconds = int(WITHIN.total_seconds())
        secure = base.startswith("https:")
        path = urlsplit(asked.returns_to).path
        answer.set_cookie(COOKIE, browser, max_age=seconds, path=path, httponly=True, samesite="lax", secure=secure)
        return answer

    async def returned(self, request: Request, now: datetime) -> tuple[Actor, str]:
        """Who has signed in, and the page they wanted. Each sign-in that was begun ends once.

        Raises NotProved, NoMember, and what `begin` raises.
        """
        begun = self._begun.pop(request.query_params.get("state", ""), None)
        shown = cookie_in(request.headers, COOKIE) or ""
        if begun is None or begun.until < now or not compare_digest(begun.browser.encode(), shown.encode()):
            raise NotProved("this browser has not begun to sign in, or longer ago than ten minutes")
        code = request.query_params.get("code")
        if not code:
            raise NotProved(f"the provider says `{request.query_params.get('error', 'nothing')[:100]}`")
        settings = await self.settings()
        claims = await self.provider.claims(settings.client, begun.asked, code)
        return await self.admit(address_of(claims), settings, now), begun.wanted

    def _forget(self, now: datetime) -> None:
        over = [state for state, one in self._begun.items() if one.until < now]
        for state in [*over, *list(self._begun)[: max(0, len(self._begun) - len(over) - MOST + 1)]]:
            self._begun.pop(state, None)
