"""The contract of session providers on this machine, beyond the common one: they control real processes."""

import asyncio
import os
import re
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Readiness
from lamplighter.ports.sessions import NudgesLate, SessionProvider
from lamplighter.testing.contracts.sessions import ALPHA, AT_ONCE, Cities, SessionContract, hear, shows
from lamplighter.testing.puppets import puppet, until


class LocalSessionContract(SessionContract):
    async def test_a_killed_program_is_heard_at_once(self, provider: SessionProvider, tmp_path: Path) -> None:
        endings = provider.ended()
        started = await provider.start(puppet("alpha", tmp_path))
        os.kill(_pid(started.pid), signal.SIGKILL)
        assert await hear(endings) == ALPHA
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.exit_status) == (False, 128 + signal.SIGKILL)

    async def test_a_program_that_becomes_ready_late_gets_its_first_nudge_then(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        late = Readiness(mark="said lit", within=timedelta(seconds=0.2))
        spec = puppet("alpha", tmp_path, readiness=late, nudge="say good morning")
        started = await provider.start(spec)
        assert meta.NUDGE_WAITS in started.meta
        assert "not become ready" in started.meta[meta.NUDGE_FAILED]
        assert isinstance(provider, NudgesLate)
        waiting = asyncio.ensure_future(provider.nudge_when_ready(spec, started.session_id))
        await provider.send_keys(ALPHA, "say lit", "Enter")
        await shows(provider, ALPHA, "said good morning")
        assert await waiting == ""
        assert (await provider.peek(ALPHA, 0)).index("said lit") < (await provider.peek(ALPHA, 0)).index("good morning")

    async def test_nobody_waits_for_a_start_that_is_over(self, provider: SessionProvider, tmp_path: Path) -> None:
        spec = puppet("alpha", tmp_path, readiness=Readiness(mark="never", within=timedelta(0)), nudge="say hello")
        started = await provider.start(spec)
        assert isinstance(provider, NudgesLate)
        await provider.stop(ALPHA, grace=AT_ONCE)
        await provider.start(puppet("alpha", tmp_path))
        assert await provider.nudge_when_ready(spec, started.session_id) is None

    async def test_stopping_ends_descendants_that_left_for_sessions_of_their_own(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        started = await provider.start(puppet("alpha", tmp_path))
        child = await spawned(provider)
        await provider.stop(ALPHA)
        assert not _runs(child)
        assert not _runs(_pid(started.pid))

    async def test_stopping_ends_descendants_that_outlived_their_parent(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        started = await provider.start(puppet("alpha", tmp_path))
        child = await spawned(provider)
        os.kill(_pid(started.pid), signal.SIGKILL)
        await provider.stop(ALPHA, grace=AT_ONCE)
        assert not _runs(child)

    async def test_a_start_over_a_dead_session_ends_what_that_left_running(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        endings = provider.ended()
        started = await provider.start(puppet("alpha", tmp_path))
        child = await spawned(provider)
        os.kill(_pid(started.pid), signal.SIGKILL)
        await hear(endings)
        again = await provider.start(puppet("alpha", tmp_path))

        async def gone() -> bool:
            return not _runs(child)

        await until(gone)
        assert _runs(_pid(again.pid))

    async def test_a_program_that_ignores_the_request_is_killed(
        self, provider: SessionProvider, tmp_path: Path
    ) -> None:
        spec = puppet("alpha", tmp_path)
        stubborn = (spec.command[0], "-c", "trap '' TERM HUP INT; echo ready; while :; do sleep 0.05; done")
        started = await provider.start(replace(spec, command=stubborn))
        await shows(provider, ALPHA, "ready")
        await provider.stop(ALPHA, grace=AT_ONCE)
        assert not _runs(_pid(started.pid))

    async def test_an_end_that_nobody_watched_is_known_afterwards(self, cities: Cities, tmp_path: Path) -> None:
        first = cities.open()
        started = await first.start(puppet("alpha", tmp_path))
        await first.nudge(ALPHA, "exit 7")
        await first.close()

        async def gone() -> bool:
            return not _runs(_pid(started.pid))

        await until(gone)
        second = cities.open()

        async def told() -> bool:
            return (await second.seen())[ALPHA].exit_status == 7

        await until(told)
        assert not (await second.seen())[ALPHA].alive

    async def test_an_adopted_session_is_watched_too(self, cities: Cities, tmp_path: Path) -> None:
        first = cities.open()
        started = await first.start(puppet("alpha", tmp_path))
        await first.close()
        second = cities.open()
        endings = second.ended()
        await second.seen()
        os.kill(_pid(started.pid), signal.SIGKILL)
        assert await hear(endings) == ALPHA


async def spawned(provider: SessionProvider) -> int:
    """Let the puppet start a child in a POSIX session of its own; returns the child's pid."""
    await provider.nudge(ALPHA, "spawn")
    await shows(provider, ALPHA, "child ")
    found = re.search(r"child (\d+)", await provider.peek(ALPHA, 0))
    assert found is not None
    return int(found[1])


def _pid(pid: int | None) -> int:
    assert pid is not None
    return pid


def _runs(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
