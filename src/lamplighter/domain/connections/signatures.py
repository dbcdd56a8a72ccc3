"""Signatures of deliveries: verified over the raw bytes, in constant time, and made for a test delivery."""

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from lamplighter.domain.delivery_fields import Provider

TOLERANCE = timedelta(minutes=5)
_MINUTES = TOLERANCE // timedelta(minutes=1)
SENT_AT = "webhookTimestamp"
"""The key of the time, in milliseconds, at which Linear sent a payload."""
PREFIX = "whsec_"
SHORTEST_SECRET = 16
MOST_SIGNATURES = 20
_HEX_HEADERS: Mapping[Provider, str] = {
    Provider.GITHUB: "x-hub-signature-256",
    Provider.LINEAR: "linear-signature",
    Provider.SENTRY: "sentry-hook-signature",
    Provider.POSTHOG: "x-posthog-signature",
}


def unverified(
    provider: Provider, secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> str:
    """Why a delivery is not the sender's; empty if one of the secrets proves it. Header names are in small letters."""
    match provider:
        case Provider.STANDARD:
            return _standard(secrets, headers, body, now)
        case Provider.BEARER:
            return "" if _bears(secrets, headers) else "no `Authorization: Bearer` with the connection's token"
        case Provider.POSTHOG if _HEX_HEADERS[provider] not in headers:
            return "" if _bears(secrets, headers) else "neither a signature nor the connection's token"
        case _:
            return _hexadecimal(_HEX_HEADERS[provider], secrets, headers, body)


def is_signed(provider: Provider, headers: Mapping[str, str]) -> bool:
    """Whether a signature over the body proves it, rather than a token."""
    return provider is Provider.STANDARD or _HEX_HEADERS.get(provider, "") in headers


def untimely(provider: Provider, payload: Mapping[str, Any], now: datetime) -> str:
    """Why the signed time in a payload does not hold; empty if it does, or if the provider's payloads have none."""
    if provider is not Provider.LINEAR:
        return ""
    at = payload.get(SENT_AT)
    if isinstance(at, int) and not isinstance(at, bool):
        off = abs(int(now.timestamp() * 1000) - at)
        if off <= TOLERANCE // timedelta(milliseconds=1):
            return ""
    return f"its `{SENT_AT}` is not within {_MINUTES} minutes of now"


def signed(provider: Provider, secret: str, delivery: str, body: bytes, now: datetime) -> dict[str, str]:
    """The headers that prove a delivery; `delivery` is its id."""
    if provider is Provider.STANDARD:
        at = str(int(now.timestamp()))
        mac = base64.b64encode(_standard_mac(_key(secret), delivery, at, body)).decode()
        return {"webhook-id": delivery, "webhook-timestamp": at, "webhook-signature": f"v1,{mac}"}
    if provider is Provider.BEARER:
        return {"authorization": f"Bearer {secret}", "webhook-id": delivery}
    digest = _mac(secret.encode(), body).hex()
    header = _HEX_HEADERS[provider]
    return {header: f"sha256={digest}" if provider is Provider.GITHUB else digest}


def wrong_secret(provider: Provider, secret: str) -> str:
    """Why it cannot be the secret of such a connection; empty if it can."""
    if provider is Provider.STANDARD and not _key(secret):
        return "it is not base64, with or without `whsec_` before it"
    if len(secret) < SHORTEST_SECRET or not secret.isascii() or not secret.isprintable() or " " in secret:
        return f"it has fewer than {SHORTEST_SECRET} characters, or ones that no header can have"
    return ""


def new_secret(provider: Provider, chance: bytes) -> str:
    return f"{PREFIX}{base64.b64encode(chance).decode()}" if provider is Provider.STANDARD else chance.hex()


def _standard(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: datetime) -> str:
    delivery, at, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not delivery or not given:
        return "no `webhook-id` or no `webhook-signature`"
    if not at.isascii() or not at.isdigit() or abs(now.timestamp() - int(at[:12])) > TOLERANCE.total_seconds():
        return f"its `webhook-timestamp` is not within {_MINUTES} minutes of now"
    shown = [one.partition(",")[2] for one in given.split(" ")[:MOST_SIGNATURES] if one.startswith("v1,")]
    for secret in secrets:
        mac = base64.b64encode(_standard_mac(_key(secret), delivery, at, body)).decode()
        if any([_same(mac, one) for one in shown]):  # noqa: C419  every one is compared, whatever the others are
            return ""
    return "the signature is not the connection's"


def _hexadecimal(header: str, secrets: Sequence[str], headers: Mapping[str, str], body: bytes) -> str:
    given = headers.get(header, "").removeprefix("sha256=").strip().lower()
    if not given:
        return f"no `{header}`"
    macs = [_mac(secret.encode(), body).hex() for secret in secrets]
    return "" if any([_same(one, given) for one in macs]) else "the signature is not the connection's"  # noqa: C419


def _bears(secrets: Sequence[str], headers: Mapping[str, str]) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    shown = token.strip() if scheme.lower() == "bearer" else headers.get("x-posthog-token", "")
    return any([_same(one, shown) for one in secrets])  # noqa: C419


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode(errors="replace"))


def _standard_mac(key: bytes, delivery: str, at: str, body: bytes) -> bytes:
    return _mac(key, b".".join((delivery.encode(), at.encode(), body)))


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.new(key, body, sha256).digest()


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""
