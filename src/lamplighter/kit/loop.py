"""The one endless loop."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from lamplighter.kit.clock import Clock

Tick = Callable[[], Awaitable[object]]


async def every(period: Callable[[], timedelta], tick: Tick, *, clock: Clock, wake: asyncio.Event) -> None:
    """Tick at once, whenever woken, and after `period()` at the latest. A wake-up is a hint, the poll the promise."""
    while True:
        wake.clear()
        await tick()
        await clock.wait(wake, at_most=period())
