"""Signing in at an OpenID provider: authorization code with PKCE, and an id token that is verified by its keys."""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from lamplighter.domain.access import NotProved
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.identities import Asked, Client

SECONDS = 10.0
LARGEST = 1 << 20
KEPT_SECONDS = 3600.0
LEEWAY_SECONDS = 60
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those with a key pair: with the others whoever knows the client's secret could make a token."""
SCOPES = "openid email profile"


@dataclass(frozen=True)
class _Provider:
    authorization: str
    token: str
    keys: str
    people: str
    """Where it tells more of a person than its id tokens do; empty where it has no such place."""
    at: float


@dataclass
class OpenIdProvider:
    """`monotonic` is in seconds; the time in tokens is compared with this machine's own."""

    monotonic: Callable[[], float] = time.monotonic
    _known: dict[str, _Provider] = field(default_factory=dict)

    async def address(self, client: Client, asked: Asked) -> str:
        provider = await self._provider(client.issuer)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(asked.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code", "client_id": client.client_id, "redirect_uri": asked.returns_to, "scope": SCOPES,
            "state": asked.state, "nonce": asked.nonce, "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        return f"{provider.authorization}{'&' if '?' in provider.authorization else '?'}{urlencode(query)}"

    async def claims(self, client: Client, asked: Asked, code: str) -> Mapping[str, Any]:
        provider = await self._provider(client.issuer)
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": asked.returns_to,
            "code_verifier": asked.verifier,
        }  # fmt: skip
        headers = {}
        if client.secret:
            shown = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(shown.encode()).decode()}"
        else:
            form["client_id"] = client.client_id
        answer = await _asked("POST", provider.token, headers=headers, form=form)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise NotProved("the provider gave no id token")
        keys = await _asked("GET", provider.keys)
        claims = await asyncio.to_thread(_verified, token, keys, client, asked.nonce)
        access = answer.get("access_token")
        if "email" in claims or not provider.people or not isinstance(access, str):
            return claims
        more = await _asked("GET", provider.people, headers={"authorization": f"Bearer {access}"})
        if more.get("sub") != claims["sub"]:
            raise NotProved("the provider tells of somebody else than its id token")
        return {**more, **claims}

    async def _provider(self, issuer: str) -> _Provider:
        """Its addresses, asked for at most once an hour. Raises Unavailable."""
        known = self._known.get(issuer)
        if known is not None and self.monotonic() - known.at < KEPT_SECONDS:
            return known
        told = await _asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if told.get("issuer") != issuer:
            raise Unavailable(
                f"The provider calls itself `{str(told.get('issuer'))[:200]}`, and not `{issuer}`.",
                hint="Write `[oidc] issuer` as the provider does, with or without the slash at its end.",
            )
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        missing = [name for name in names if not isinstance(told.get(name), str)]
        if missing:
            raise Unavailable(f"The provider at {issuer} does not say its `{missing[0]}`.")
        authorization, token, keys = (str(told[name]) for name in names)
        people = told.get("userinfo_endpoint")
        people = people if isinstance(people, str) else ""
        found = self._known[issuer] = _Provider(authorization, token, keys, people, self.monotonic())
        return found


async def _asked(
    method: str, address: str, *, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object of an answer; redirects are not followed. Raises NotProved for a refusal, Unavailable."""
    import httpx2  # takes long to import, and few cities sign in so

    try:
        async with (
            TimeLimit(SECONDS),
            httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False) as client,
            client.stream(method, address, headers=dict(headers or {}), data=form) as answer,
        ):
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > LARGEST:
                    raise Unavailable("The provider sent more than a megabyte.")
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise Unavailable(
            f"The provider gave no answer: {type(error).__name__}.", hint="Check `[oidc] issuer`, and the network."
        ) from error
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if form is not None and 400 <= answer.status_code < 500:
        why = found.get("error") if isinstance(found, dict) else answer.status_code
        raise NotProved(f"the provider refused the code: {str(why)[:200]}")
    if answer.status_code != 200 or not isinstance(found, dict):
        raise Unavailable(f"The provider answered {answer.status_code} without what was asked.")
    return found


def _verified(token: str, keys: Mapping[str, Any], client: Client, nonce: str) -> Mapping[str, Any]:
    """Raises NotProved."""
    import jwt

    try:
        header = jwt.get_unverified_header(token)
        found = [one for one in jwt.PyJWKSet.from_dict(dict(keys)).keys if one.key_id == header.get("kid")]
        if len(found) != 1:
            raise NotProved("its id token is signed with a key that the provider does not name")
        claims: Mapping[str, Any] = jwt.decode(
            token, found[0], algorithms=list(ALGORITHMS), audience=client.client_id, issuer=client.issuer,
            leeway=LEEWAY_SECONDS, options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )  # fmt: skip
    except jwt.PyJWTError as error:
        raise NotProved(f"its id token does not hold: {error}") from error
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (several or "azp" in claims) and claims.get("azp") != client.client_id:
        raise NotProved("its id token is for another client")
    if claims.get("nonce") != nonce:
        raise NotProved("its id token is not for this sign-in")
    return claims
