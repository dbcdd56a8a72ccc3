"""Reads request bodies: bounded in size, and only JSON objects."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError

LARGEST = 1 << 20


async def json_object(request: Request) -> dict[str, Any]:
    """Raises UsageError for a body that is not a JSON object, 413 for one that is too large."""
    try:
        found = json_text.parse(await _bounded(request))
    except ValueError as error:
        raise UsageError(f"The body is not JSON that can be used: {error}.", hint="Send a JSON object.") from error
    if not isinstance(found, dict):
        raise UsageError("The body is not a JSON object.", hint='Send one such as {"outcome": "succeeded"}.')
    return found


async def _bounded(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(413, f"a body has at most {LARGEST} bytes")
    return bytes(body)
