"""Lets starts go one after another, where all at once would hold each other up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from lamplighter.kit.clock import Clock
from lamplighter.kit.tasks import spawn

LONGEST_TURN = timedelta(seconds=15)


@dataclass
class Turns:
    """The next turn begins when this one is over, and after LONGEST_TURN in any case."""

    clock: Clock
    _taken: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        await self._taken.acquire()
        over = asyncio.Event()
        spawn(self._pass_on(over), name="turn of a start")
        try:
            yield
        finally:
            over.set()

    async def _pass_on(self, over: asyncio.Event) -> None:
        try:
            await self.clock.wait(over, at_most=LONGEST_TURN)
        finally:
            self._taken.release()
