"""Requests of Slack: proved over their raw bytes, in constant time, and fresh."""

import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

TOLERANCE = timedelta(minutes=5)
VERSION = "v0"


def unverified(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> str:
    """Why a request is not Slack's; empty if the signing secret proves it. Header names are in small letters."""
    at, given = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not at.isascii() or not at.isdigit() or abs(now.timestamp() - int(at[:12])) > TOLERANCE.total_seconds():
        return f"its `x-slack-request-timestamp` is not within {TOLERANCE // timedelta(minutes=1)} minutes of now"
    mac = hmac.new(secret.encode(), b":".join((VERSION.encode(), at.encode(), body)), sha256).hexdigest()
    same = hmac.compare_digest(f"{VERSION}={mac}".encode(), given.encode(errors="replace"))
    return "" if same else "the signature is not that of the signing secret"
