"""A real city for each of the installed agent programs in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from programs import PROGRAMS, Town, a_town


@pytest.fixture
def on_postgres(request: pytest.FixtureRequest) -> str:
    """What a city's file says to have its rows in a PostgreSQL database of its own."""
    return f'[store]\nurl = "{request.getfixturevalue("postgres_url")}"\n'


@pytest.fixture
async def town(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Town]:
    """Parametrised by `programs.only` with the name of the program, or by `programs.with_state` with both databases."""
    name, _, database = request.param.partition(" on ")
    more = request.getfixturevalue("on_postgres") if database else ""
    async with a_town(tmp_path / "town", PROGRAMS[name], more=more) as found:
        yield found
