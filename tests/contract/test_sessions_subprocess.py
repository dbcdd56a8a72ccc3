"""The subprocess provider keeps the contract, with real processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.subprocess import SubprocessProvider
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.contracts.local_sessions import LocalSessionContract
from lamplighter.testing.session_cities import RealCities


class TestSubprocess(LocalSessionContract):
    @pytest.fixture
    async def cities(self, tmp_path: Path) -> AsyncIterator[RealCities]:
        clock = SystemClock()
        root = tmp_path / "state"
        cities = RealCities(lambda city: SubprocessProvider(root / city, city=city, clock=clock, ids=IdSource(clock)))
        yield cities
        await cities.end_all()
