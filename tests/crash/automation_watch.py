"""Looks into a city from outside its daemon: its rows, and waiting for what becomes of its runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.wakeups import listening
from lamplighter.kit import aio
from lamplighter.store.place import open_direct, open_store, parse_place
from lamplighter.store.tx import Tx
from lamplighter.store.wakes import Wakes

R = TypeVar("R")
WITHIN = 30
POLL = 1.0


def look(city: Path, fn: Callable[[Tx], R]) -> R:
    paths = CityPaths(city)
    store = open_direct(parse_place("", paths.runtime), paths.city_id())
    try:
        return store.read(fn)
    finally:
        store.close()


def rows(city: Path, sql: str) -> list[dict[str, Any]]:
    return look(city, lambda tx: [dict(row) for row in tx.db.rows(sql, {})])


def wait_until(city: Path, holds: Callable[[Tx], bool]) -> None:
    """Until it holds: asked again whenever the city's processes commit something. Raises TimeoutError."""
    aio.run(_wait(city, holds))


async def _wait(city: Path, holds: Callable[[Tx], bool]) -> None:
    paths = CityPaths(city)
    place = parse_place("", paths.runtime)
    wakes = Wakes()
    store = open_store(place, paths.city_id(), wakes)
    try:
        with listening(place, "watcher", wakes):
            woken = wakes.subscribe("runs", "events", "outbox", "automations")
            async with asyncio.timeout(WITHIN):
                while not await store.read(holds):
                    try:
                        await asyncio.wait_for(woken.wait(), POLL)
                    except TimeoutError:
                        continue
                    woken.clear()
    finally:
        await store.close()


def all_ended(tx: Tx) -> bool:
    """There are runs, and none is under way."""
    return not tx.runs.any_active() and bool(tx.runs.page(limit=1))
