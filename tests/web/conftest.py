from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from served import Served, served


@pytest.fixture
async def city(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "town") as opened:
        yield opened
