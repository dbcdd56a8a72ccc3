"""The subprocess provider keeps the contract, with real processes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.adapters.sessions.local import shim
from lamplighter.adapters.sessions.local.provider import SubprocessProvider
from lamplighter.domain.sessions.meta import ENV_SESSION_ID
from lamplighter.domain.sessions.model import CopyFile, Readiness, SessionName, Setup
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.sessions import StartFailed
from lamplighter.testing.contracts.local_sessions import LocalSessionContract
from lamplighter.testing.contracts.sessions import ALPHA, AT_ONCE, hear, shows
from lamplighter.testing.puppets import PATH, puppet, until
from lamplighter.testing.session_cities import RealCities

_DAEMON = """
import asyncio, sys
from pathlib import Path
from lamplighter.adapters.sessions.local.provider import SubprocessProvider
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.testing.puppets import puppet
async def main():
    clock = SystemClock()
    provider = SubprocessProvider(Path(sys.argv[1]), city=sys.argv[3], clock=clock, ids=IdSource(clock))
    for number in range(3):
        await provider.start(puppet(f"agent-{number}", Path(sys.argv[2])))
    print("up", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


class TestSubprocess(LocalSessionContract):
    @pytest.fixture
    async def cities(self, tmp_path: Path) -> AsyncIterator[RealCities]:
        clock = SystemClock()
        root = tmp_path / "state"
        root.mkdir()
        cities = RealCities(
            lambda city, city_id: SubprocessProvider(root / city, city=city_id, clock=clock, ids=IdSource(clock))
        )
        yield cities
        await cities.end_all()

    async def test_sessions_outlive_a_killed_daemon_and_are_found_again(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _DAEMON, str(tmp_path / "state" / "first"), str(tmp_path), cities.city_id(),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert daemon.stdout is not None
        assert await daemon.stdout.readline() == b"up\n"
        daemon.kill()
        await daemon.wait()
        provider = cities.open()
        endings = provider.ended()
        seen = await provider.seen()
        assert sorted(name for name, one in seen.items() if one.alive) == ["agent-0", "agent-1", "agent-2"]
        await provider.nudge(SessionName("agent-1"), "exit 5")
        assert await hear(endings) == "agent-1"
        assert (await provider.seen())[SessionName("agent-1")].exit_status == 5

    async def test_a_killed_shim_leaves_the_program_watched(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        endings = provider.ended()
        started = await provider.start(puppet("alpha", tmp_path))
        parent = shim.shim_of(tmp_path / "state" / "first" / "alpha")
        assert parent is not None
        os.kill(parent.pid, signal.SIGKILL)
        assert (await provider.seen())[ALPHA].alive

        async def watched() -> bool:  # the loop has to hear of the shim's end first
            return parent.pid not in provider._children.values()

        await until(watched)
        assert started.pid is not None
        os.kill(started.pid, signal.SIGKILL)
        assert await hear(endings) == ALPHA
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.exit_status) == (False, None)

    async def test_a_start_that_was_cut_off_counts_as_dead_and_can_be_done_again(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        provider._records.create(puppet("alpha", tmp_path), "ses_cut", SystemClock().now(), lambda _: None)
        seen = (await provider.seen())[ALPHA]
        assert (seen.alive, seen.pid) == (False, None)
        assert (await provider.start(puppet("alpha", tmp_path))).alive

    async def test_a_signal_to_the_group_does_not_cost_the_exit_status(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        endings = provider.ended()
        spec = replace(
            puppet("alpha", tmp_path), command=("/bin/sh", "-c", "trap 'exit 9' TERM; kill -TERM 0; sleep 60")
        )
        await provider.start(spec)
        assert await hear(endings) == ALPHA
        assert (await provider.seen())[ALPHA].exit_status == 9

    async def test_the_environment_is_what_was_given_and_no_more(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        spec = puppet("alpha", tmp_path, takes_input=False, env={"PATH": PATH, "ONLY": "this"})
        await provider.start(replace(spec, command=("env",)))
        await shows(provider, ALPHA, "ONLY=this")
        keys = {line.split("=")[0] for line in (await provider.peek(ALPHA, 0)).splitlines()}
        assert keys == {"PATH", "ONLY", "PWD", ENV_SESSION_ID, "LAMP_SESSION", "LAMP_CITY_ID"}

    async def test_signals_start_at_their_defaults(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        asks = "import signal; print([s.name for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])"
        spec = replace(puppet("alpha", tmp_path), command=(sys.executable, "-S", "-E", "-c", asks))
        await provider.start(spec)
        await shows(provider, ALPHA, "]\n")
        assert await provider.peek(ALPHA) == "['SIGPIPE', 'SIGXFSZ']"  # Python's own doing

    async def test_output_is_bounded_while_the_program_goes_on(self, tmp_path: Path) -> None:
        clock = SystemClock()
        provider = SubprocessProvider(
            tmp_path / "state",
            city=f"bounded-{os.urandom(6).hex()}",
            clock=clock,
            ids=IdSource(clock),
            output_bytes=1000,
        )
        await provider.start(puppet("alpha", tmp_path))
        await provider.nudge(ALPHA, "count 300")
        await shows(provider, ALPHA, "line 300")
        await provider.cleanup()
        assert (tmp_path / "state/alpha/output").stat().st_size < 1000
        await provider.nudge(ALPHA, "say still here")
        await shows(provider, ALPHA, "line 300\nsaid still here")
        await provider.stop(ALPHA, grace=AT_ONCE)
        await provider.close()

    async def test_set_up_comes_before_and_after_the_start_and_overwrites_nothing(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        work, overlay = tmp_path / "work", tmp_path / "overlay"
        (overlay / "sub").mkdir(parents=True)
        (overlay / "sub/new").write_text("from overlay")
        (overlay / "kept").write_text("from overlay")
        work.mkdir()
        (work / "kept").write_text("mine")
        setup = Setup(
            overlay_dir=str(overlay),
            copy_files=(CopyFile(str(overlay / "kept"), "copied"),),
            before=("echo before > order",),
            after=("echo after $LAMP_SESSION >> order",),
        )
        provider = cities.open()
        await provider.start(puppet("alpha", work, setup=setup, readiness=Readiness(mark="ready")))
        assert (work / "order").read_text() == "before\nafter alpha\n"
        assert ((work / "sub/new").read_text(), (work / "kept").read_text()) == ("from overlay", "mine")
        assert (work / "copied").read_text() == "from overlay"

    async def test_a_failing_command_before_the_start_fails_it_with_its_words(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        with pytest.raises(StartFailed, match="no such branch"):
            await provider.start(puppet("alpha", tmp_path, setup=Setup(before=("echo no such branch; exit 3",))))
        assert await provider.seen() == {}

    async def test_a_program_that_ends_before_it_is_ready_fails_the_start_with_its_words(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        spec = puppet("alpha", tmp_path, readiness=Readiness(mark="never"))
        with pytest.raises(StartFailed, match="bad config"):
            await provider.start(replace(spec, command=("/bin/sh", "-c", "echo bad config; exit 1")))

    async def test_variables_of_any_name_reach_the_program_as_they_are(
        self, cities: RealCities, tmp_path: Path
    ) -> None:
        provider = cities.open()
        names = ("dir", "boot", "work", "start", "pid", "inner")
        env = {"PATH": os.environ["PATH"]} | {name: f"mine {name}" for name in names}
        await provider.start(puppet("alpha", tmp_path, env=env))
        for name in names:
            await provider.nudge(ALPHA, f"env {name}")
            await shows(provider, ALPHA, f"env {name} is mine {name}")

    async def test_an_output_that_cannot_be_read_is_told_in_its_place(self, cities: RealCities, tmp_path: Path) -> None:
        provider = cities.open()
        await provider.start(puppet("alpha", tmp_path))
        await shows(provider, ALPHA, "ready")
        output = provider._records.home(ALPHA) / "output"
        output.unlink()
        output.mkdir()
        assert "output cannot be read: Is a directory" in await provider.peek(ALPHA)
        assert (await provider.seen())[ALPHA].alive
