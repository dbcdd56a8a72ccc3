"""Sends a delivery to the city's own port, as its sender would."""

from collections.abc import Mapping
from urllib.parse import quote

from lamplighter.kit.errors import Unavailable

SECONDS = 10.0


async def knock(url: str | None, connection: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """The status of the answer, and its text. Raises Unavailable if nobody listens."""
    if url is None:
        raise Unavailable("The city is not running, so that nothing can be delivered to it.", hint="`lamp up` runs it.")
    import httpx2  # takes long to import, and only a test needs it

    path = f"{url.rstrip('/')}/hooks/{quote(connection, safe='')}"
    try:
        async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.post(path, content=body, headers=dict(headers))
    except httpx2.HTTPError as error:
        raise Unavailable(f"{path} gave no answer: {type(error).__name__}.", hint="`lamp doctor` looks.") from error
    return answer.status_code, answer.text
