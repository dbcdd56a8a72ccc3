"""Which conversation a firing goes on with: that of the value at a path in what fired it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

LONGEST_KEY = 200


def key_at(path: str | None, found: Mapping[str, Any]) -> str | None:
    """The value at the path as a key; None where there is none, or where it is no single value."""
    if path is None:
        return None
    value: Any = found
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    text = str(value)
    return text if len(text) <= LONGEST_KEY else sha256(text.encode(errors="surrogatepass")).hexdigest()


def key_of(path: str | None, payload: Mapping[str, Any]) -> str | None:
    """The key of a firing with that payload: of its first event, or of what came with it."""
    events = payload.get("events")
    return key_at(path, events[0] if isinstance(events, Sequence) and events else payload)


def alike(path: str | None, events: Sequence[Mapping[str, Any]]) -> int:
    """How many of the first events belong to one conversation; all of them where that is not asked for."""
    if path is None or not events:
        return len(events)
    first = key_at(path, events[0])
    return next((place for place, one in enumerate(events) if key_at(path, one) != first), len(events))
