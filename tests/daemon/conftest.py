"""A city whose loops run inside the test, and a town for each test of the patrol."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from loops_city import Loops, open_loops
from patrol_town import PROVIDERS, Town, a_town

from lamplighter.store.url import Place


@pytest.fixture
async def loops(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Loops]:
    """On SQLite; a test that is marked with `on_both` runs on each database."""
    place: Place = request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_place")
    async with open_loops(place, tmp_path) as found:
        yield found


@pytest.fixture(params=PROVIDERS)
async def town(request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    """On the fake provider, and for real."""
    async with a_town(request.param) as made:
        yield made


@pytest.fixture
async def fake_town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        yield made
