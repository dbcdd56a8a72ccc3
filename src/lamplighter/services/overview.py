"""A summary of a city: what runs, what needs a person, what comes next; its cost does not grow with the history."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.kit.clock import rfc3339
from lamplighter.kit.ids import At, IdSource
from lamplighter.store.tx import Tx

LOOKED_AT = timedelta(days=7)
SHOWN = 5
ATTENTION = ("needs_human", "failed", "timed_out")


@dataclass(frozen=True)
class Overview:
    paused: bool
    runs: dict[str, int]
    """Counts by state: all runs under way, and ended runs made in the last seven days."""
    attention: int
    next: list[dict[str, Any]]


def overview(tx: Tx, now: datetime) -> Overview:
    city = tx.cities.find()
    since = IdSource(At(now - LOOKED_AT), bytes).make("run")  # ids sort by time: this is the lowest id of that moment
    counts = tx.runs.counts(since=since)
    upcoming = tx.triggers.upcoming(limit=SHOWN)
    return Overview(
        paused=city is not None and city.paused_at is not None,
        runs=counts,
        attention=sum(counts.get(state, 0) for state in ATTENTION),
        next=[{"scoped_name": name, "trigger": trigger, "at": rfc3339(at)} for name, trigger, at in upcoming],
    )
