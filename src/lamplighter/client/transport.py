"""What the two faces share of HTTP: how a connection is made, and what its failures mean."""

from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2

from lamplighter.client.calls import Core, Reply, Retries
from lamplighter.client.problems import CityUnreachable, cut_off, too_slow, unreached
from lamplighter.client.routes import Asked
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import UsageError
from lamplighter.kit.ids import Chance, IdSource

CONNECT_S = 10.0
QUIET_S = 45.0
"""After so many seconds without a line a stream counts as cut; the city sends one every 15 seconds."""
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class AddressWrong(UsageError):
    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"`{url}` is not the address of a city: {why}.", hint="Such as https://lamp.example.org:8787.")


@dataclass(frozen=True)
class Way:
    """The way to a city: the arguments of an HTTP client, and the core that says what to send."""

    options: dict[str, Any]
    core: Core


def way_to(url: str, token: str, retries: Retries) -> Way:
    """Raises UsageError for an address or a token that cannot be one."""
    address, token = checked_address(url), checked_token(token)
    options = {
        "base_url": address,
        "headers": {"Authorization": f"Bearer {token}"},
        "follow_redirects": False,  # a token is shown to the address it was given for, and to no other
        "trust_env": urlsplit(address).hostname not in _LOOPBACK,  # a proxy does not reach this machine's own ports
    }
    clock, chance = SystemClock(), Chance()
    ids = IdSource(clock)
    core = Core(
        address,
        retries,
        clock.monotonic,
        lambda: int.from_bytes(chance(2), "big") / 65536,
        lambda: ids.make("key"),
    )
    return Way(options, core)


def checked_token(token: str) -> str:
    """Raises UsageError for one that cannot be sent in a header."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("The token is empty, or has characters that no token has.", hint="Copy it again, whole.")
    return token


def checked_address(url: str) -> str:
    """The address without a slash at its end. Raises AddressWrong."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressWrong(url, str(error)) from error
    if parts.scheme not in ("http", "https"):
        raise AddressWrong(url, "it does not begin with http:// or https://")
    if not host or port == 0:
        raise AddressWrong(url, "it names no host" if not host else "there is no port 0")
    try:
        httpx2.URL(url.strip())
        host.encode("idna")
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise AddressWrong(url, "no host has such a name") from error
    if parts.username is not None or parts.query or parts.fragment:
        raise AddressWrong(url, "it has more than a host, a port and a path")
    return url.strip().rstrip("/")


def request_of(asked: Asked) -> dict[str, Any]:
    """The arguments with which an HTTP client makes the request."""
    made: dict[str, Any] = {"method": asked.method, "url": asked.path, "headers": dict(asked.headers)}
    if asked.query:
        made["params"] = list(asked.query)
    if asked.body is not None:
        made["json"] = asked.body
    return made | {"timeout": httpx2.Timeout(asked.within, connect=CONNECT_S)}


def stream_of(asked: Asked) -> dict[str, Any]:
    return request_of(asked) | {"timeout": httpx2.Timeout(QUIET_S, connect=CONNECT_S)}


class Answer(Protocol):
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Any: ...
    @property
    def content(self) -> bytes: ...


def reply_of(answer: Answer) -> Reply:
    headers = answer.headers
    return Reply(answer.status_code, headers.get("content-type", ""), headers.get("retry-after"), answer.content)


def failure(error: httpx2.HTTPError, asked: Asked, url: str) -> CityUnreachable:
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol)):
        return unreached(error, url)
    done = False if asked.repeats else None
    if isinstance(error, httpx2.TimeoutException):
        return too_slow(url, asked.within, done=done)
    return cut_off(url, done=done)
