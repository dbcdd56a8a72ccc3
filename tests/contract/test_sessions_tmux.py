"""The tmux provider keeps the contract, with a real server for each test."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.tmux import TmuxProvider
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.contracts.local_sessions import LocalSessionContract
from lamplighter.testing.session_cities import RealCities


class TestTmux(LocalSessionContract):
    @pytest.fixture
    async def cities(self) -> AsyncIterator[RealCities]:
        clock = SystemClock()
        with tempfile.TemporaryDirectory() as short:  # a socket's path must be short
            root = Path(short)
            cities = RealCities(
                lambda city: TmuxProvider(
                    root / city, root / f"{city}.sock", city=city, clock=clock, ids=IdSource(clock), environ=os.environ
                )
            )
            yield cities
            await cities.end_all()
