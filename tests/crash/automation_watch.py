"""Looks into a city from outside its daemon: its rows, and waiting for what becomes of its runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lamplighter.adapters.files.city import CityPaths
from lamplighter.app.settings import Settings
from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity
from lamplighter.kit import aio
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, open_direct, open_store

R = TypeVar("R")
WITHIN = 120
POLL = 1.0


def place_of(city: Path) -> Place:
    """Where the city keeps its rows, as its city.toml says."""
    clock = SystemClock()
    settings = Settings(cwd=city, city=city, actor="tester", run=None, env={})
    return OpenCity(settings, CityPaths(city), clock, IdSource(clock)).place


def look(city: Path, fn: Callable[[Tx], R]) -> R:
    store = open_direct(place_of(city), CityPaths(city).city_id())
    try:
        return store.read(fn)
    finally:
        store.close()


def write(city: Path, fn: Callable[[Tx], R]) -> R:
    store = open_direct(place_of(city), CityPaths(city).city_id())
    try:
        return store.transact(fn)
    finally:
        store.close()


def rows(city: Path, sql: str) -> list[dict[str, Any]]:
    return look(city, lambda tx: [dict(row) for row in tx.db.rows(sql, {})])


def wait_until(city: Path, holds: Callable[[Tx], bool], *, within: float = WITHIN) -> None:
    """Until it holds: asked again whenever the city's processes commit something. Raises TimeoutError."""
    aio.run(_wait(city, holds, within))


async def _wait(city: Path, holds: Callable[[Tx], bool], within: float) -> None:
    paths = CityPaths(city)
    place = place_of(city)
    wakes = Wakes()
    store = open_store(place, paths.city_id(), wakes)
    try:
        with listening(place, "watcher", wakes):
            woken = wakes.subscribe("runs", "events", "outbox", "automations", "owners")
            async with asyncio.timeout(within):
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
