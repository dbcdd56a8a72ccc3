"""Faults of the file system in the middle of a start: the run ends with its reason, at once, and the next one works."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops_city import Loops
from structlog.testing import capture_logs

from lamplighter.adapters.processes.table import all_processes
from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.errors import Unavailable
from lamplighter.ports.commands import Command, CommandEnded, CommandRunner
from lamplighter.services.automations import due
from lamplighter.testing.few_descriptors import only


class Troubled:
    """A runner whose `run` does what it is told to; the rest is another's."""

    def __init__(self, real: CommandRunner, run: Callable[[Command], Awaitable[CommandEnded]]) -> None:
        self._real = real
        self.run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def block(loops: Loops, name: str) -> Path:
    """Put a file where a directory of the city should be."""
    place = loops.root / ".gc" / name
    if place.is_dir():
        place.rmdir()
    place.touch()
    return place


async def test_a_command_that_cannot_be_laid_out_ends_its_run_at_once_and_the_next_one_runs(loops: Loops) -> None:
    await loops.add("tick", exec="echo x >>lines")
    place = block(loops, "commands")
    failed = await loops.work("tick")
    assert (failed.state, failed.reason) == (RunState.FAILED, "not_started")
    assert "commands cannot be written: File exists" in (failed.error or "")
    assert not loops.parts.worker.holds(failed.id)
    place.unlink()
    assert (await loops.work("tick")).state is RunState.SUCCEEDED
    assert (loops.root / "lines").read_text() == "x\n"


@pytest.mark.parametrize("lasts", [2, 9], ids=["it passes", "it lasts"])
async def test_a_run_of_which_nothing_ran_is_tried_again_three_times_before_it_needs_anybody(
    loops: Loops, lasts: int
) -> None:
    await loops.add("tick", exec="echo x >>lines", gate="cooldown", interval="1000h")
    place = block(loops, "commands")
    report = await loops.store.transact(due.fire_due, limit=10, rules=loops.rules, ctx=loops.context)
    soon = "UPDATE outbox SET due_at = 0 WHERE state = 'pending'"
    for number in range(6):
        if number == lasts:
            place.unlink()
        await loops.store.transact(lambda tx: tx.db.execute(soon, {}))
        await loops.parts.dispatcher.drain()
    rows = sorted(await loops.store.read(lambda tx: tx.runs.page(automation="tick")), key=lambda row: row.attempt)
    assert [row.retries for row in rows] == [None, *(row.id for row in rows[:-1])]
    assert [rows[0].id] == list(report.fired)
    passed = [row.state is RunState.SUCCEEDED for row in rows]
    assert passed == ([False, False, True] if lasts == 2 else [False] * 4)
    assert [bool(row.fingerprint) for row in rows] == [False] * (len(rows) - 1) + [lasts == 9], "only the last one"
    assert {row.reason for row in rows[:-1]} == {"not_started"}
    written = loops.root / "lines"
    assert (written.read_text() if written.exists() else "") == ("x\n" if lasts == 2 else "")


async def test_a_precheck_that_cannot_be_laid_out_ends_its_run_too(loops: Loops) -> None:
    await loops.add("tick", exec="echo x >>lines", precheck="true")
    block(loops, "commands")
    failed = await loops.work("tick")
    assert (failed.state, failed.reason) == (RunState.FAILED, "not_started")


async def test_a_run_without_descriptors_for_its_command_ends_at_once(loops: Loops) -> None:
    await loops.add("tick", exec="echo x >>lines")
    run = await loops.fire("tick")
    await loops.store.read(lambda tx: tx.cities.find())  # its connections are open from now on
    with only(0):
        for _ in range(3):
            with suppress(Unavailable):
                await loops.parts.dispatcher.drain()
    async with asyncio.timeout(30):
        await loops.parts.dispatcher.drain()
    ended = await loops.get(run)
    written = loops.root / "lines"
    ran = written.read_text().count("x") if written.exists() else 0
    assert (ended.state, ran) in {(RunState.FAILED, 0), (RunState.SUCCEEDED, 1)}


async def test_a_command_whose_directory_is_taken_away_is_followed_to_its_end(loops: Loops) -> None:
    await loops.add("long", exec="touch begun; while [ ! -e go ]; do sleep 0.05; done")
    run = await loops.fire("long")
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    await loops.until(lambda: exists(loops.root / "begun"))
    (loops.root / ".gc" / "commands").rename(loops.root / "away")
    block(loops, "commands")
    (loops.root / "go").touch()
    async with asyncio.timeout(30):
        await loops.parts.dispatcher.drain()
    ended = await loops.get(run)
    assert (ended.state, ended.reason) == (RunState.FAILED, "interrupted")
    assert "nobody saw how it ended" in (ended.error or "")


async def test_a_command_whose_directory_is_taken_away_can_be_called_off(loops: Loops) -> None:
    nap = f"5151.{os.getpid()}"
    await loops.add("long", exec=f"touch begun; sleep {nap}")
    run = await loops.fire("long")
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    await loops.until(lambda: exists(loops.root / "begun"))
    (loops.root / ".gc" / "commands").rename(loops.root / "away")
    await loops.parts.worker.stop()
    ended = await loops.get(run)
    assert (ended.state, ended.reason) == (RunState.FAILED, "interrupted")
    assert not [one for one in all_processes().values() if one.name == "sleep" and nap in _words(one.pid)]


async def exists(path: Path) -> bool:
    return path.exists()


def _words(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


@pytest.mark.parametrize("name", ["sessions", "runs"])
async def test_an_agent_run_that_cannot_be_laid_out_ends_at_once_and_the_next_one_runs(loops: Loops, name: str) -> None:
    await loops.add("agent", agent={"prompt": "echo hello", "preset": "shell"})
    place = block(loops, name)
    failed = await loops.work("agent")
    assert (failed.state, failed.reason) == (RunState.FAILED, "not_started")
    assert f".gc/{name}" in (failed.error or "")
    place.unlink()
    assert (await loops.work("agent")).reason == "no_completion"


async def test_an_agent_run_whose_worktree_cannot_be_made_ends_at_once(loops: Loops) -> None:
    await repository(loops.root / "web")
    loops.city = replace(loops.city, runs=Runs(isolation="worktree"))
    loops.parts = loops.build("own_first")
    await loops.add("agent", rig="web", agent={"prompt": "echo hello", "preset": "shell"})
    block(loops, "worktrees")
    failed = await loops.work("agent:rig:web")
    assert (failed.state, failed.reason) == (RunState.FAILED, "worktree_failed")


async def repository(root: Path) -> None:
    script = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"
    made = await asyncio.create_subprocess_shell(script, cwd=root)
    assert await made.wait() == 0


async def test_a_run_that_breaks_by_a_bug_ends_with_what_was_said_and_the_bug_is_logged(loops: Loops) -> None:
    async def broken(_command: Command) -> CommandEnded:
        raise RuntimeError("a bug")

    loops.parts.worker.runner = Troubled(loops.runner, broken)
    await loops.add("tick", exec="true")
    with capture_logs() as told:
        ended = await loops.work("tick")
    assert (ended.state, ended.reason) == (RunState.FAILED, "interrupted")
    assert ended.error == "RuntimeError: a bug"
    assert [line["run"] for line in told if line["event"] == "run.broke"] == [ended.id]


async def test_a_run_waits_for_what_is_away_and_takes_its_command_up_again(loops: Loops) -> None:
    tries = 0

    async def away_at_first(command: Command) -> CommandEnded:
        nonlocal tries
        tries += 1
        ended = await loops.runner.run(command)
        if tries == 1:
            raise Unavailable("Nobody can look now.")
        return ended

    loops.parts.worker.runner = Troubled(loops.runner, away_at_first)
    await loops.add("tick", exec="echo x >>lines")
    assert (await loops.work("tick")).state is RunState.SUCCEEDED
    assert tries == 2
    assert (loops.root / "lines").read_text() == "x\n"


async def test_a_newer_job_of_the_same_run_keeps_its_bookkeeping(loops: Loops) -> None:
    """A worker that lost a run for a moment takes it up again while its first job is still on its way out."""
    await loops.add("long", exec="touch begun; while [ ! -e go ]; do sleep 0.05; done")
    run = await loops.fire("long")
    worker = loops.parts.worker
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    await loops.until(lambda: exists(loops.root / "begun"))
    first = next(iter(worker.tasks.running))
    worker.begin(await loops.get(run))
    first.cancel()
    await asyncio.wait({first})
    assert worker.holds(run)
    (loops.root / "go").touch()
    async with asyncio.timeout(30):
        await worker.tasks.all_done()
    assert not worker.holds(run)
    assert (await loops.get(run)).state is RunState.SUCCEEDED


async def test_a_directory_of_commands_in_disorder_does_not_keep_the_dispatcher_from_its_work(loops: Loops) -> None:
    await loops.add("agent", agent={"prompt": "echo hello", "preset": "shell"})
    block(loops, "commands")
    run = await loops.fire("agent")
    working = asyncio.create_task(loops.parts.dispatcher.loop())

    async def ended() -> bool:
        return bool((await loops.get(run)).ended)

    await loops.until(ended)
    working.cancel()
    await asyncio.wait({working})
    assert (await loops.get(run)).reason == "no_completion"
