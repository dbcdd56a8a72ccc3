"""Checks `Host` and `Origin` of requests, so that foreign web pages cannot reach the city through a browser.

A page can make its own host name resolve to this machine (DNS rebinding), or send a request to one of the city's
addresses; the browser then names the page's site in `Host` or `Origin`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lamplighter.domain.access import Forbidden
from lamplighter.kit.errors import LampError
from lamplighter.web.errors import REQUEST_ID, problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LONGEST_REMEMBERED = 200
DEFAULT_PORTS = {"http": 80, "https": 443}

_MORE_THAN_A_HOST = re.compile(r"[^A-Za-z0-9.:_\[\]-]")

Site = tuple[str, str, int]
"""Scheme, host, port."""


class ForeignSite(Forbidden):
    def __init__(self, header: str, said: str | None, own: str) -> None:
        what = f"`{header}: {said[:200]}` is not" if said else f"The request has no single `{header}`, which is not"
        LampError.__init__(
            self,
            f"{what} an address of this city.",
            hint=f"Ask {own}; where the city has another address, set it as `[api] public_url`.",
        )


@dataclass(frozen=True)
class Reached:
    """`[api] host` and `[api] public_url`."""

    host: str = "127.0.0.1"
    public_url: str = ""

    def sites(self, local: tuple[str, int]) -> frozenset[Site]:
        """All addresses of the city, for a connection that was accepted at the address and port `local`."""
        address, port = local
        seen = address.removeprefix("::ffff:")  # an IPv4 connection on a dual-stack socket
        own = {("http", name.lower(), port) for name in (*LOOPBACK, self.host, seen)}
        public = site_of(self.public_url) if self.public_url else None
        return frozenset(own if public is None else own | {public})


def refusal(host: str | None, origin: str | None, reached: Reached, local: tuple[str, int]) -> ForeignSite | None:
    """Why a request with these headers is refused; None if it is not. A request need not have an origin."""
    sites = reached.sites(local)
    own = reached.public_url or f"http://{LOOPBACK[0]}:{local[1]}"
    if (
        host is None
        or _MORE_THAN_A_HOST.search(host)
        or not any(site_of(f"{scheme}://{host}") in sites for scheme in DEFAULT_PORTS)
    ):
        return ForeignSite("Host", host, own)
    if origin is not None and site_of(origin) not in sites:
        return ForeignSite("Origin", origin, own)
    return None


def site_of(url: str) -> Site | None:
    """Scheme, host and port of a URL; None if it is not the address of a web site."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.removesuffix("."), port or DEFAULT_PORTS[parts.scheme]


def is_secure(host: str | None, reached: Reached) -> bool:
    """Whether a request with this `Host` came over HTTPS: then it names the city's public address, and that says so."""
    public = site_of(reached.public_url) if reached.public_url else None
    if public is None or public[0] != "https" or host is None or _MORE_THAN_A_HOST.search(host):
        return False
    return site_of(f"https://{host}") == public


class OwnSites:
    """Passes on requests that name one of the city's own addresses and do not come from a foreign page."""

    def __init__(self, app: ASGIApp, reached: Callable[[], Reached]) -> None:
        self._app = app
        self._reached = reached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refused = refused_site(scope, self._reached())
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await refused(scope, receive, send)


def refused_site(scope: Scope, reached: Reached) -> Response | None:
    """The answer to a request that names no address of the city, or comes from a foreign page; None for any other."""
    named: dict[bytes, list[str]] = {b"host": [], b"origin": []}
    for name, value in scope["headers"]:
        if name in named:
            named[name].append(value.decode("latin-1"))
    address, port = scope.get("server") or (LOOPBACK[0], 0)
    host, origin = _single(named[b"host"]), _single(named[b"origin"])
    judge = _remembered if len(host or "") + len(origin or "") <= LONGEST_REMEMBERED else refusal
    refused = judge(host, origin, reached, (address, port))
    return None if refused is None else problem(refused, scope.get(REQUEST_ID))


_remembered = lru_cache(maxsize=256)(refusal)
"""Most requests name the same few addresses."""


def _single(values: list[str]) -> str | None:
    """The header's only value, None if it is missing. A header given twice gets a value that is refused: a proxy in
    between may have read the other one.
    """
    return values[0] if len(values) == 1 else None if not values else "two of them"
