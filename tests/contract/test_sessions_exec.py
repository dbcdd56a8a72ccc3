"""The exec provider keeps the contract, with a script that drives real processes."""

import os
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.exec.provider import ExecProvider
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.contracts.sessions import SessionContract
from lamplighter.testing.session_cities import RealCities

SCRIPT = Path(__file__).parents[1] / "data" / "providers" / "processes.sh"


class TestExec(SessionContract):
    plain = ""

    @pytest.fixture
    async def cities(self, tmp_path: Path) -> AsyncIterator[RealCities]:
        clock = SystemClock()
        env = {"PATH": os.environ["PATH"], "SESSIONS_ROOT": str(tmp_path / "sessions"), "PYTHON": sys.executable}
        cities = RealCities(
            lambda _, city_id: ExecProvider(
                SCRIPT, city=city_id, clock=clock, ids=IdSource(clock), env=env | {"PLAIN": self.plain},
                poll=timedelta(milliseconds=50),
            )
        )  # fmt: skip
        yield cities
        await cities.end_all()


class TestExecWithoutState(TestExec):
    """Scripts written for the common protocol have no `state`: more calls, and no exit status."""

    plain = "1"
    tells_exit_status = False
