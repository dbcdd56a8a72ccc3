"""A summary of a city: what runs, what needs a person, what comes next; its cost does not grow with the history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.services.records import work
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class Overview:
    paused: bool
    runs: dict[str, int]
    """Counts by state: all runs under way, and ended runs made in the last seven days."""
    attention: int
    next: list[dict[str, Any]]


def overview(tx: Tx, now: datetime) -> Overview:
    return Overview(**work(tx.summary, now))
