"""A town for each test of the patrol, on each provider that the test names."""

from collections.abc import AsyncIterator

import pytest
from patrol_town import PROVIDERS, Town, a_town


@pytest.fixture(params=PROVIDERS)
async def town(request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    """On the fake provider, and for real."""
    async with a_town(request.param) as made:
        yield made


@pytest.fixture
async def fake_town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        yield made
