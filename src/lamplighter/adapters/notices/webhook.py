"""Notices as webhooks: a CloudEvent in JSON, signed as Standard Webhooks describes."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from lamplighter.adapters.notices import posting
from lamplighter.domain.city.sections import Destination
from lamplighter.kit.clock import rfc3339
from lamplighter.ports.messenger import Message, NotTaken

PREFIX = "whsec_"
CONTENT_TYPE = "application/cloudevents+json"


def cloud_event(message: Message) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": f"/cities/{message.city}",
        "type": f"lamplighter.notice.{message.what}",
        "subject": message.body.get("subject"),
        "time": rfc3339(message.at),
        "datacontenttype": "application/json",
        "data": dict(message.body) | ({"link": message.link} if message.link else {}),
    }


def signed(message: Message, secrets: Sequence[bytes], timestamp: int) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a request; each secret signs id, time and body: a receiver may have either."""
    content = posting.json_of({key: value for key, value in cloud_event(message).items() if value is not None})
    over = b".".join((message.id.encode(), str(timestamp).encode(), content))
    macs = [base64.b64encode(hmac.new(one, over, hashlib.sha256).digest()).decode() for one in secrets]
    headers = {
        "content-type": CONTENT_TYPE,
        "user-agent": "lamplighter",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{mac}" for mac in macs),
    }
    return content, headers


def secrets_of(destination: Destination, values: Sequence[str], env: Mapping[str, str]) -> list[bytes]:
    """`values` are those of its named secrets. Raises NotTaken without a usable one: nothing is sent unsigned."""
    found = [_key(destination, value, name) for name, value in zip(destination.signing, values, strict=True)]
    if destination.signing_env:
        where = f"the variable {destination.signing_env} of the daemon's environment"
        text = env.get(destination.signing_env, "")
        if not text:
            told = f"No secret for {destination.name}: {where} is not set."
            raise NotTaken(told, hint="Set it, and call `lamp daemon restart` where it is set.")
        found.append(_key(destination, text, where))
    return found


def _key(destination: Destination, text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise NotTaken(
            f"The secret for {destination.name} in {where} is not base64.",
            hint="Write `whsec_` and the secret in base64, as the receiver gives it.",
        )
    return key


async def send(destination: Destination, message: Message, secrets: Sequence[bytes], now: float) -> Mapping[str, Any]:
    """Raises NotTaken for an answer that is not 2xx, Gone for 410, Unavailable if none came."""
    content, headers = signed(message, secrets, int(now))
    only_public = not destination.allow_private
    answer = await posting.post(destination.name, destination.url, content, headers, only_public=only_public)
    return {"status": answer.status}
