"""How often a run of an agent asks the database, from its firing to the end of all that follows."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops, open_loops
from test_agent_runs import add, complete

from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.domain.runs.model import RunState
from lamplighter.services.runs.ending import LAST_WORDS
from lamplighter.store.url import Place


class Counting:
    """A store that counts what it is asked, by the function that is run."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.asked: Counter[str] = Counter()

    async def read(self, fn: Any, *args: Any, **keys: Any) -> Any:
        self.asked["read"] += 1
        self.asked[fn.__qualname__] += 1
        return await self.store.read(fn, *args, **keys)

    async def transact(self, fn: Any, *args: Any, **keys: Any) -> Any:
        self.asked["transaction"] += 1
        self.asked[fn.__qualname__] += 1
        return await self.store.transact(fn, *args, **keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture
async def loops(place: Place, tmp_path: Path) -> AsyncIterator[Loops]:
    async with open_loops(place, tmp_path) as found:
        yield found


async def test_a_run_asks_for_nothing_twice(loops: Loops) -> None:
    uncounted, counting = loops.store, Counting(loops.store)
    os.mkfifo(loops.root / "go")
    loops.store = counting  # type: ignore[assignment]
    loops.parts = loops.build("own_first")
    await add(loops, "lights", "cat go")
    working = [asyncio.create_task(part()) for part in (loops.parts.dispatcher.loop, loops.parts.worker.loop)]
    await asyncio.sleep(0)
    loops.store = uncounted  # what the test asks is not counted

    async def runs() -> bool:
        return (await loops.get(run)).session_id is not None

    async def freed() -> bool:
        return loops.parts.worker.has_released(run)

    async def over() -> bool:
        return not any(await loops.store.read(_open_items))

    for _ in range(2):  # the first one fills what is kept in memory
        counting.asked.clear()
        run = await loops.fire("lights")
        await loops.until(runs)
        await complete(loops, run)
        (loops.root / "go").write_text("")
        await loops.until(freed)
        await uncounted.transact(_due_now)
        await loops.until(over)
        assert (await loops.get(run)).state is RunState.SUCCEEDED
    for task in working:
        task.cancel()
    await asyncio.wait(working)
    found = counting.asked
    assert found["take_due"] <= 3, found
    assert found["to_write"] == found["was_written"] == 2, "its request and what it reported"
    assert found["session_ended"] == 1, "the item that stops a session finds it stopped and freed"
    assert found["done"] == 0, "the item that stops a session is settled as it is taken"
    assert found["transaction"] <= 10, found
    assert found["read"] <= 12, found


def _due_now(tx: Any) -> None:
    """The session is to be stopped, for which there was time until now."""
    for item in tx.outbox.page(ItemState.PENDING):
        tx.outbox.swap(item.item, replace(item.item, due_at=item.item.due_at - LAST_WORDS), now=item.item.due_at)


def _open_items(tx: Any) -> list[int]:
    return list(tx.outbox.open_items().values())
