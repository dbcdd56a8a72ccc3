"""The one endless loop that all periodic work runs in."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from lamplighter.kit.clock import Clock

Tick = Callable[[], Awaitable[object]]


async def every(period: Callable[[], timedelta], tick: Tick, *, clock: Clock, wake: asyncio.Event) -> None:
    """Tick at once, then whenever woken and after `period()` at the latest.

    Wake-ups only make it faster and may be missed; the period is what can be relied on.
    """
    while True:
        wake.clear()
        await tick()
        await clock.wait(wake, at_most=period())
