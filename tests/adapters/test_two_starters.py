"""Two processes of a node start the same thing at the same time, since one was taken for dead: it is started once."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from lamplighter.adapters.sessions.local.commands import ShimCommands
from lamplighter.adapters.sessions.local.provider import SubprocessProvider
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import IdSource
from lamplighter.ports.commands import Command
from lamplighter.ports.sessions import SessionAlive
from lamplighter.testing.puppets import until

CITY = "cty_two_starters"
CLOCK = SystemClock()
STARTERS = 4
TIMES = 10


def noting(file: Path, then: str) -> str:
    return f"echo started >> '{file}'; {then}"


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def test_a_command_that_several_start_at_once_runs_once_and_each_is_told_its_end(tmp_path: Path) -> None:
    runners = [
        ShimCommands(tmp_path / "commands", city=CITY, clock=CLOCK, ids=IdSource(CLOCK)) for _ in range(STARTERS)
    ]
    for number in range(TIMES):
        noted = tmp_path / f"noted{number}"
        command = Command(
            key=f"run_{number}", line=noting(noted, "exit 7"), work_dir=str(tmp_path), limit=timedelta(minutes=1),
            env=dict(os.environ), files={"LAMP_TRIGGER_FILE": "{}"},
        )  # fmt: skip
        ends = await asyncio.gather(*(runner.run(command) for runner in runners))
        assert [end.exit_code for end in ends] == [7] * STARTERS
        assert lines(noted) == ["started"]
    for number in range(TIMES):
        await runners[0].forget(f"run_{number}")
    await runners[0].sweep()
    assert list((tmp_path / "commands").iterdir()) == []


async def test_a_session_that_several_start_at_once_is_one_and_the_others_are_told_so(tmp_path: Path) -> None:
    providers = [
        SubprocessProvider(tmp_path / "sessions", city=CITY, clock=CLOCK, ids=IdSource(CLOCK)) for _ in range(STARTERS)
    ]
    for number in range(TIMES):
        noted = tmp_path / f"noted{number}"
        spec = SessionSpec(
            name=SessionName(f"run_{number}"), command=("/bin/sh", "-c", noting(noted, "exec sleep 4713")),
            work_dir=str(tmp_path), env=dict(os.environ),
        )  # fmt: skip
        told = await asyncio.gather(*(provider.start(spec) for provider in providers), return_exceptions=True)
        assert sum(isinstance(one, Seen) for one in told) == 1, told
        assert sum(isinstance(one, SessionAlive) for one in told) == STARTERS - 1, told

        async def begun(file: Path = noted) -> bool:
            return bool(lines(file))

        await until(begun)
        await providers[0].stop(spec.name, grace=timedelta(0))
        assert lines(noted) == ["started"]
    for provider in providers:
        await provider.close()
