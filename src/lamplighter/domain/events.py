"""Events: append-only facts on the city's bus, each with a sequence number."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import record

TOPIC = "events"
LONGEST_PAYLOAD = 1 << 20
PRODUCT_FAMILIES = frozenset({
    "agent", "automation", "bead", "bulk", "city", "config", "configuration", "connection", "controller", "convoy",
    "delivery", "inbox", "login", "mail", "node", "owner", "rig", "run", "slack", "store",
})  # fmt: skip
"""The first words of the event types that only Lamplighter emits, so that automations can trust these events."""
_TYPE = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)+")


class ProductFamily(UsageError):
    def __init__(self, event_type: str, family: str) -> None:
        rest = event_type.partition(".")[2]
        super().__init__(
            f"`{event_type}` cannot be emitted: events of the family `{family}.*` come from Lamplighter alone.",
            hint=f"Use a first word of your own, such as `my-{family}.{rest}`, and let automations wait for that.",
        )


@record
class NewEvent:
    """An event to be appended; the store assigns its sequence number."""

    type: str
    at: datetime
    actor: str
    subject: str | None = None
    message: str | None = None
    payload: Any = None
    run: str | None = None
    """The run that caused it, if any."""


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    type: str
    at: datetime
    actor: str
    subject: str | None
    message: str | None
    payload: Any
    run: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "type": self.type,
            "at": rfc3339(self.at),
            "actor": self.actor,
            "subject": self.subject,
            "message": self.message,
            "payload": self.payload,
            "run": self.run,
        }


@dataclass(frozen=True, slots=True)
class EventFilter:
    """All conditions must hold; None means no condition."""

    type: str | None = None
    actor: str | None = None
    subject: str | None = None
    since: datetime | None = None
    after: int = 0

    def passes(self, event: Event) -> bool:
        return (
            event.seq > self.after
            and (self.type is None or matches(self.type, event.type))
            and (self.actor is None or event.actor == self.actor)
            and (self.subject is None or event.subject == self.subject)
            and (self.since is None or event.at >= self.since)
        )


def checked_type(text: str) -> str:
    """An event type such as `bead.closed`; raises UsageError for anything else."""
    if not _TYPE.fullmatch(text) or len(text) > 120:
        raise UsageError(
            f"`{text}` is not an event type.",
            hint="Write lower-case words joined by dots, such as `deploy.finished`.",
        )
    return text


def checked_outside_type(text: str) -> str:
    """A type that people, programs and runs may emit. Raises UsageError, ProductFamily."""
    family = checked_type(text).partition(".")[0]
    if family in PRODUCT_FAMILIES:
        raise ProductFamily(text, family)
    return text


def type_prefix(pattern: str) -> str | None:
    """`bead.*` gives `bead.`; an exact type gives None."""
    return pattern[:-1] if pattern.endswith(".*") else None


def matches(pattern: str, event_type: str) -> bool:
    prefix = type_prefix(pattern)
    return event_type == pattern if prefix is None else event_type.startswith(prefix)
