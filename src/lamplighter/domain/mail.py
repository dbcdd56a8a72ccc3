"""A mail message between agents and people, independent of where it is stored."""

from dataclasses import dataclass
from datetime import datetime

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


def title_of(body: str) -> str:
    """The first line of a body, shortened, for lists."""
    return next(iter(body.strip().splitlines()), "")[:LONGEST_TITLE]
