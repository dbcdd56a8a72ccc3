"""The clock as a dependency: the one place that reads the system's time, and the protocol all other code waits on."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from lamplighter.kit.limits import TimeLimit
from lamplighter.kit.records import record

if TYPE_CHECKING:
    import asyncio  # importing it takes a third of a short command's time, and such commands never wait


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step back, for measuring how long something took."""
        ...

    async def wait(self, wake: "asyncio.Event", *, at_most: timedelta) -> bool:
        """Wait for `wake`, but no longer than `at_most`; True when it was woken."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def wait(self, wake: "asyncio.Event", *, at_most: timedelta) -> bool:
        try:
            async with TimeLimit(at_most.total_seconds()):
                await wake.wait()
        except TimeoutError:
            return False
        return True


SET_BACK_TOLERANCE = timedelta(seconds=5)
"""Clocks of machines that work together may differ this much; a smaller step back only lengthens waits by that step."""


@record
class Reading:
    """Both clocks at one moment: the wall clock, which can be set, and the monotonic clock, which never goes back."""

    now: datetime
    monotonic: float


def set_back_by(before: Reading, after: Reading) -> timedelta | None:
    """By how much the wall clock was set back between the two readings; None within the tolerance."""
    passed = timedelta(seconds=after.monotonic - before.monotonic)
    by = before.now + passed - after.now
    return by if by > SET_BACK_TOLERANCE else None


def rfc3339(at: datetime) -> str:
    """`at` in UTC with microseconds and a Z: fixed width, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_rfc3339(text: str) -> datetime:
    """Raises ValueError for text that is not a time or names no offset."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"`{text}` names no time zone")
    return at.astimezone(UTC)
