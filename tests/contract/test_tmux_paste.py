"""Text of many lines reaches a program in tmux as one paste, where the program can tell a paste from typing."""

import os
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.tmux.provider import TmuxProvider
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.contracts.sessions import ALPHA, shows
from lamplighter.testing.puppets import puppet
from lamplighter.testing.session_cities import RealCities

SHOWS_WHAT_IT_GETS = r"stty -echo; printf '\033[?2004h'; echo ready; cat -v"
"""It asks for brackets around a paste, as agent programs do, and shows them."""


@pytest.fixture
async def cities() -> AsyncIterator[RealCities]:
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as short:  # a socket's path must be short
        root = Path(short)
        found = RealCities(
            lambda city, city_id: TmuxProvider(
                root / city, root / f"{city}.sock", city=city_id, clock=clock, ids=IdSource(clock), environ=os.environ
            )
        )
        yield found
        await found.end_all()


async def test_several_lines_are_one_paste_and_a_short_line_is_typed(cities: RealCities, tmp_path: Path) -> None:
    provider = cities.open()
    await provider.start(replace(puppet("alpha", tmp_path), command=("/bin/sh", "-c", SHOWS_WHAT_IT_GETS)))
    await shows(provider, ALPHA, "ready")
    await provider.nudge(ALPHA, "short")
    await shows(provider, ALPHA, "short")
    await provider.nudge(ALPHA, "one\ntwo")
    await shows(provider, ALPHA, "two^[[201~")
    shown = await provider.peek(ALPHA, 0)
    assert "^[[200~one" in shown
    assert "^[[200~short" not in shown
