"""A mail message between agents and people, independent of where it is stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.kit.clock import rfc3339

HUMAN = "human"
LONGEST_TITLE = 120


@dataclass(frozen=True)
class Message:
    id: str
    sender: str
    to: str
    body: str
    created_at: datetime | None = None

    @property
    def title(self) -> str:
        return title_of(self.body)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "from": self.sender or None,
            "to": self.to,
            "title": self.title,
            "body": self.body,
            "created_at": None if self.created_at is None else rfc3339(self.created_at),
        }


def title_of(body: str) -> str:
    """The first line of a body, shortened, for lists."""
    return next(iter(body.strip().splitlines()), "")[:LONGEST_TITLE]
