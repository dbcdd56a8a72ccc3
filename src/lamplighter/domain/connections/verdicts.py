"""What a trigger can make of a delivery, and when deliveries that are gathered become a run."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase

MOST_RUNS_NAMED = 20
MOST_GATHERED = 100
LARGEST_GATHERED = 4 << 20
"""A gathering ends with so many deliveries, or with so many bytes of their bodies."""
_RUN = re.compile(r"\brun_[0-9a-hjkmnp-tv-z]{26}\b")


class Judged(StrEnum):
    FIRED = "fired"
    FILTERED = "filtered"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"
    HELD = "held"
    GATHERED = "gathered"
    LOOP = "loop"


def dedup_key(provider: str, external_id: str | None, delivery: str) -> str:
    """By what the delivery is known by: later edits of one thing have ids of their own, a repetition has not."""
    return f"delivery:{delivery}" if external_id is None else f"{provider}:{external_id}"


def is_allowed(author: str, allowed: Iterable[str]) -> bool:
    """Whether the author is on the list; everybody is on an empty one. Names are compared without regard to case."""
    patterns = [one.casefold() for one in allowed]
    return not patterns or any(fnmatchcase(author.casefold(), one) for one in patterns)


def runs_named(body: str) -> list[str]:
    """The runs whose ids a payload holds, as in the name of a branch: what it tells of was their doing."""
    return list(dict.fromkeys(_RUN.findall(body)))[:MOST_RUNS_NAMED]


def is_full(deliveries: int, size: Callable[[], int]) -> bool:
    """Whether a gathering takes no more; `size`, its bytes, is asked for only if that decides."""
    return deliveries >= MOST_GATHERED or size() >= LARGEST_GATHERED


def gathered_until(began: datetime, now: datetime, quiet: timedelta, most: timedelta) -> datetime:
    """When a gathering ends: once nothing has come for `quiet`, and `most` after it began at the latest."""
    return min(now + quiet, began + most)
