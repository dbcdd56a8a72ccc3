"""Notices through ntfy: one request to a server of the user's choice, which shows it on phones."""

from collections.abc import Mapping
from typing import Any

from lamplighter.adapters.notices import posting, words
from lamplighter.domain.city.sections import Destination
from lamplighter.ports.messenger import Gone, Message, NotTaken

LONGEST = 3500
"""ntfy turns a longer message into an attached file; counted in bytes."""
URGENT, USUAL = 4, 3


def published(destination: Destination, message: Message) -> dict[str, Any]:
    """What is published. The id is the same at every try: a server since 2.16 shows a repeat in place of the first."""
    told = {
        "topic": destination.topic,
        "title": words.title(message),
        "message": _cut(words.text(message)),
        "priority": destination.priority or (URGENT if words.is_urgent(message) else USUAL),
        "tags": [message.what],
        "sequence_id": message.id,
    }
    return told | ({"click": message.link} if message.link else {})


async def send(destination: Destination, message: Message, token: str) -> Mapping[str, Any]:
    """Raises NotTaken for an answer that is not 2xx, Unavailable if none came. Redirects are not followed."""
    headers = {"content-type": "application/json", "user-agent": "lamplighter"}
    if token:
        if not (token.isascii() and token.isprintable()):
            told = f"{destination.name}: its token has characters that a request cannot carry."
            raise NotTaken(told, hint="Mend the secret: `lamp secret set`.")
        headers["authorization"] = f"Bearer {token}"
    content = posting.json_of(published(destination, message))
    try:
        answer = await posting.post(destination.name, destination.url.rstrip("/") + "/", content, headers)
    except Gone as error:  # only of a webhook does it mean for good
        raise NotTaken(error.message, hint=error.hint) from error
    return {"status": answer.status}


def _cut(text: str) -> str:
    if len(text.encode()) <= LONGEST:
        return text
    return text.encode()[:LONGEST].decode(errors="ignore") + "…"
