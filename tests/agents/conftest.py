from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from programs import PROGRAMS, City, Program, a_city


@pytest.fixture(params=sorted(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


@pytest.fixture
async def city(tmp_path: Path) -> AsyncIterator[City]:
    async with a_city(tmp_path) as opened:
        yield opened
