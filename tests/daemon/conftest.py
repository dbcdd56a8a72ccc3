"""A city whose loops run inside the test, and a town for each test of the patrol."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from loops_city import Loops
from patrol_town import PROVIDERS, Town, a_town

from lamplighter.kit.clock import SystemClock
from lamplighter.store.owners import Owner
from lamplighter.store.url import SqliteUrl


@pytest.fixture
async def loops(sqlite_place: SqliteUrl, tmp_path: Path) -> AsyncIterator[Loops]:
    found = Loops(sqlite_place, tmp_path, SystemClock())
    await found.store.transact(lambda tx: tx.cities.ensure("loops", found.clock.now()))
    owner = Owner("own_first", "controller", "here", os.getpid(), found.clock.now())
    await found.store.transact(lambda tx: tx.owners.register(owner))
    yield found
    await found.parts.close()
    await found.parts.worker.stop()
    await found.store.close()


@pytest.fixture(params=PROVIDERS)
async def town(request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    """On the fake provider, and for real."""
    async with a_town(request.param) as made:
        yield made


@pytest.fixture
async def fake_town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        yield made
