"""The exec provider keeps the contract, with a script that drives real processes."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.exec.provider import ExecProvider
from lamplighter.domain.sessions.model import SessionName, SessionSpec
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


class PatientClock(SystemClock):
    """Records how long it was to wait, and waits until it is told to go on."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[timedelta] = asyncio.Queue()

    async def wait(self, wake: asyncio.Event, *, at_most: timedelta) -> None:
        self.asked.put_nowait(at_most)
        await wake.wait()


class Counted:
    """A provider on a script without `state` that keeps a list of its calls."""

    def __init__(self, root: Path, clock: SystemClock) -> None:
        self.calls_file = root / "calls"
        script = root / "counted.sh"
        script.write_text(f'#!/bin/sh\necho "$1" >> {self.calls_file}\nexec {SCRIPT} "$@"\n')
        script.chmod(0o755)
        env = {
            "PATH": os.environ["PATH"],
            "SESSIONS_ROOT": str(root / "sessions"),
            "PYTHON": sys.executable,
            "PLAIN": "1",
        }
        ids = IdSource(clock)
        self.provider = ExecProvider(script, city="cty_1", clock=clock, ids=ids, env=env)

    def calls(self) -> list[str]:
        """The calls since the last question."""
        found = self.calls_file.read_text().split()
        self.calls_file.write_text("")
        return found

    async def close(self) -> None:
        for name in await self.provider.seen():
            await self.provider.stop(name, grace=timedelta(0))
        await self.provider.close()


async def test_a_script_without_state_is_asked_only_for_what_can_have_changed(tmp_path: Path) -> None:
    counted = Counted(tmp_path, SystemClock())
    try:
        for name in ("a", "b"):
            await counted.provider.start(spec(name, work_dir=tmp_path))
        await counted.provider.seen()
        counted.calls()
        found = await counted.provider.seen()
        assert [seen.meta["LAMP_AGENT"] for seen in found.values()] == ["a", "b"]
        each = {"get-meta": 4, "process-alive": 1, "get-last-activity": 1}
        assert Counter(counted.calls()) == {"list-running": 1} | {call: 2 * count for call, count in each.items()}
        await counted.provider.set_meta(SessionName("a"), "GC_DRAIN", "1")
        await counted.provider.set_meta(SessionName("a"), "GC_DRAIN_REASON", "drift")
        seen = await counted.provider.see(SessionName("a"))
        assert seen is not None
        assert (seen.meta["GC_DRAIN"], seen.meta["GC_DRAIN_REASON"]) == ("1", "drift")
    finally:
        await counted.close()


async def test_looks_for_ends_make_two_calls_a_second_at_most_without_state(tmp_path: Path) -> None:
    clock = PatientClock()
    counted = Counted(tmp_path, clock)
    try:
        for name in ("a", "b", "c"):
            await counted.provider.start(spec(name, work_dir=tmp_path))
        await counted.provider.seen()
        counted.calls()
        counted.provider.ended()
        pause = await clock.asked.get()
        calls = counted.calls()
        assert Counter(calls) == {"list-running": 1, "process-alive": 3}
        assert pause == timedelta(seconds=len(calls) / 2)
    finally:
        await counted.close()


def spec(name: str, *, work_dir: Path) -> SessionSpec:
    return SessionSpec(SessionName(name), ("sleep", "600"), str(work_dir), meta={"LAMP_AGENT": name})
