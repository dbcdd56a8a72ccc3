"""A clock that stands still until a test moves it."""

import asyncio
from datetime import UTC, datetime, timedelta

from lamplighter.kit.limits import TimeLimit

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FakeClock:
    """A task that waits on it continues when woken, or when `advance` reaches its time; time never passes by itself."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._now = start
        self._sleepers: dict[asyncio.Future[None], datetime] = {}
        self._arrivals = asyncio.Condition()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    def advance(self, by: timedelta | float) -> datetime:
        """Move the clock forward by a duration or by seconds, and wake every waiter whose time has come."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta():
            raise ValueError("time does not run backwards")
        self._now += step
        for sleeper, until in list(self._sleepers.items()):
            if until <= self._now and not sleeper.done():
                sleeper.set_result(None)
        return self._now

    def set_back(self, by: timedelta) -> datetime:
        """Set the wall clock back, as a person or a time server may do; monotonic time and waits are not affected."""
        self._now -= by
        self._start -= by
        self._sleepers = {sleeper: until - by for sleeper, until in self._sleepers.items()}
        return self._now

    async def wait(self, wake: asyncio.Event, *, at_most: timedelta) -> bool:
        if wake.is_set() or at_most <= timedelta():
            return wake.is_set()
        asleep = asyncio.get_running_loop().create_future()
        woken = asyncio.ensure_future(wake.wait())
        self._sleepers[asleep] = self._now + at_most
        try:
            await self._tell_arrival()
            await asyncio.wait({asleep, woken}, return_when=asyncio.FIRST_COMPLETED)
            return wake.is_set()
        finally:
            del self._sleepers[asleep]
            asleep.cancel()
            woken.cancel()

    async def sleepers(self, count: int = 1, *, within: float = 120) -> None:
        """Return when `count` tasks wait on this clock: their loops have done their work. Raises TimeoutError."""
        async with TimeLimit(within), self._arrivals:
            await self._arrivals.wait_for(lambda: len(self._sleepers) >= count)

    async def _tell_arrival(self) -> None:
        async with self._arrivals:
            self._arrivals.notify_all()
