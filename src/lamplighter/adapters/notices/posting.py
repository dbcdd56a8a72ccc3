"""One HTTP request with a notice: within a time limit, without redirects, to public addresses unless allowed."""

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from lamplighter.kit.errors import Unavailable
from lamplighter.kit.limits import TimeLimit
from lamplighter.ports.messenger import Gone, NotTaken

SECONDS = 15.0
CONNECTED = 10.0
GONE = 410
_SHOWN = 200


@dataclass(frozen=True)
class Answer:
    status: int


def json_of(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


async def post(name: str, url: str, content: bytes, headers: Mapping[str, str], *, only_public: bool = False) -> Answer:
    """Raises NotTaken for an answer that is not 2xx, Gone for 410, Unavailable if none came."""
    import httpx2  # takes long to import, and few processes send anything

    try:
        async with TimeLimit(SECONDS):  # the client's own limit is for each read: a slow drip has none
            target = await _public(name, url) if only_public else _Target(url, {}, {})
            limits = httpx2.Timeout(SECONDS, connect=CONNECTED)
            async with (
                httpx2.AsyncClient(timeout=limits, follow_redirects=False) as client,
                client.stream(
                    "POST", target.url, content=content, headers={**headers, **target.headers},
                    extensions=target.extensions,
                ) as answer,
            ):  # fmt: skip
                status = answer.status_code
                said = "" if answer.is_success else await _beginning(answer, httpx2.HTTPError)
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise NotTaken(
            f"{name} cannot be reached: {str(error) or 'no connection in time'}.", hint="Check its url."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        told = f"{name} gave no answer: {type(error).__name__}{f': {error}' if str(error) else ''}."
        raise Unavailable(told, hint="It is not known whether the notice arrived.") from error
    if not 200 <= status < 300:
        told = f"{name} answered {status}{f': {said}' if said else ''}."
        if status == GONE:
            raise Gone(told, hint="It takes no notices any more: mend the url, or remove the destination.")
        raise NotTaken(told, hint="Look at the receiver, or mend the url.")
    return Answer(status)


async def _beginning(answer: Any, broken_off: type[Exception]) -> str:
    """The first words of a refusal, whatever its length; an answer that breaks off is still a refusal."""
    found = b""
    try:
        async for part in answer.aiter_bytes():
            found += part
            if len(found) >= _SHOWN * 4:
                break
    except broken_off:
        pass
    return " ".join(found.decode(errors="replace").split())[:_SHOWN]


@dataclass(frozen=True)
class _Target:
    url: str
    headers: Mapping[str, str]
    extensions: Mapping[str, Any]


async def _public(name: str, url: str) -> _Target:
    """The url with the address it leads to in place of the name: what was looked at is what is connected to.

    Raises NotTaken where any of its addresses is not public.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        host = host if host.isascii() else host.encode("idna").decode()
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotTaken(f"{name} cannot be reached: {host} has no address: {error}.", hint="Check its url.") from error
    addresses = [str(one[4][0]) for one in found]
    for address in addresses:
        if not is_public(address):
            raise NotTaken(
                f"{name} leads to {address}, which is this machine or a private network.",
                hint="If it is meant to, set `allow_private = true` at this destination.",
            )
    address = addresses[0]
    shown = f"[{address}]" if ":" in address else address
    own_host = f"[{host}]" if ":" in host else host
    asked = own_host if parts.port is None else f"{own_host}:{parts.port}"
    moved = parts._replace(netloc=f"{shown}:{port}").geturl()
    return _Target(moved, {"host": asked}, {"sni_hostname": host} if parts.scheme == "https" else {})


def is_public(address: str) -> bool:
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None and not inner.is_global:
            return False
        if found.ipv4_mapped is not None:
            return inner is not None and inner.is_global and not inner.is_multicast
    return found.is_global and not found.is_multicast and not found.is_reserved
