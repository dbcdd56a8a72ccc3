"""A commit wakes the tasks of its own process once: what it tells the other processes does not come back to it."""

import asyncio
from collections import Counter

from lamplighter.app.wakeups import listening
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.url import Place, open_store

WITHIN = 60
CITY = "cty_wakes"


class Process:
    """The wake-ups of one process of the city."""

    def __init__(self) -> None:
        self.wakes = Wakes()
        self.heard: Counter[str] = Counter()
        self.new = asyncio.Event()
        for topic in ("first", "second"):
            self.wakes.watch((topic,), lambda topic=topic: self.hear(topic), object())  # type: ignore[misc]

    def hear(self, topic: str) -> None:
        self.heard[topic] += 1
        self.new.set()

    async def has_heard(self, topic: str) -> None:
        async with asyncio.timeout(WITHIN):
            while not self.heard[topic]:
                self.new.clear()
                await self.new.wait()


async def test_a_commit_wakes_its_own_process_once_and_the_others(place: Place) -> None:
    here, there = Process(), Process()
    mine, other = open_store(place, CITY, here.wakes), open_store(place, CITY, there.wakes)
    with listening(place, "own_here", here.wakes), listening(place, "own_there", there.wakes):
        here.heard.clear()  # whoever begins to listen is woken for all it may have missed
        there.heard.clear()
        await mine.transact(lambda tx: tx.wake("first"))
        await there.has_heard("first")
        await other.transact(lambda tx: tx.wake("second"))
        await here.has_heard("second")  # it came after whatever the first one brought
        assert here.heard["first"] == 1
    await mine.close()
    await other.close()
