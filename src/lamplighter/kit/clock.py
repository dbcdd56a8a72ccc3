"""Time as an argument: the one place that reads the clock, and the port everything else waits on."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio  # costs a third of a short command's time, and those never wait


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
        import asyncio

        try:
            async with asyncio.timeout(max(at_most.total_seconds(), 0)):
                await wake.wait()
        except TimeoutError:
            return False
        return True


def rfc3339(at: datetime) -> str:
    """`at` in UTC with microseconds and a Z: fixed width, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_rfc3339(text: str) -> datetime:
    """Raises ValueError for text that is not a time or names no offset."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"`{text}` names no time zone")
    return at.astimezone(UTC)
