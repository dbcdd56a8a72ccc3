"""A real city for each of the installed agent programs in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from programs import PROGRAMS, Town, a_town


@pytest.fixture
async def town(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Town]:
    """Parametrised by `programs.only` with the name of the program."""
    async with a_town(tmp_path / "town", PROGRAMS[request.param]) as found:
        yield found
