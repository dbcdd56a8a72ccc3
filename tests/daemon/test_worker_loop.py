"""The worker and the dispatcher: leases kept, ends that came too late, what others may be at, the order of a stop."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from loops_city import Loops

from lamplighter.daemon.pipeline.handlers import Handlers
from lamplighter.domain.delivery.outbox import Item, ItemKind
from lamplighter.domain.runs.model import RunState
from lamplighter.services import owners
from lamplighter.services.runs import review
from lamplighter.store.owners import Owner
from lamplighter.store.url import SqliteUrl
from lamplighter.testing.clock import FakeClock

WITHIN = 120
both = pytest.mark.parametrize("name", ["long", "agent"])
"""A command, and the program of an agent."""


@pytest.fixture
async def still(sqlite_place: SqliteUrl, tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Loops]:
    """A city whose loops go by a clock that the test moves; its commands are real."""
    found = Loops(sqlite_place, tmp_path, fake_clock)
    await found.store.transact(lambda tx: tx.cities.ensure("still", fake_clock.now()))
    for name in ("own_first", "own_second"):
        me = Owner(name, "worker", "here", os.getpid(), fake_clock.now())
        await found.store.transact(lambda tx, me=me: tx.owners.register(me))
    os.mkfifo(tmp_path / "go")
    await found.add("long", exec="echo begun; cat go")
    await found.add("agent", agent={"prompt": "echo begun; cat go; exit 3", "preset": "shell"})
    yield found
    await found.parts.worker.stop()
    await found.parts.close()
    await found.store.close()


async def at_work(loops: Loops, name: str = "long") -> str:
    """A run whose command or program has begun, and waits for the test."""
    run = await loops.fire(name)
    agents = loops.parts.worker.agents
    assert agents is not None

    async def begun() -> bool:
        await loops.parts.dispatcher.tick()
        return "begun" in (await loops.runner.tail(run) + await agents.tail(run))

    await loops.until(begun)
    return run


async def the_command_ends(loops: Loops) -> None:
    """And its worker is through with it; what its task failed with is raised."""
    tasks = set(loops.parts.worker.tasks.running)
    await asyncio.to_thread((loops.root / "go").write_text, "")
    async with asyncio.timeout(WITHIN):
        await asyncio.gather(*tasks)


async def test_a_run_that_outlasts_its_lease_stays_its_worker_s(still: Loops, fake_clock: FakeClock) -> None:
    run = await at_work(still)
    keeping = asyncio.create_task(still.parts.worker.loop())
    other = still.build("own_second")
    for _ in range(7):
        await fake_clock.sleepers()
        fake_clock.advance(timedelta(seconds=60))

        async def renewed() -> bool:
            lease = (await still.get(run)).lease
            return lease.expires_at is not None and lease.expires_at > fake_clock.now() + timedelta(minutes=4)

        await still.until(renewed)
        assert await other.worker.adopt() == 0
    keeping.cancel()
    await asyncio.wait({keeping})
    assert (await still.get(run)).lease.owner == "own_first"
    await the_command_ends(still)
    assert (await still.get(run)).state is RunState.SUCCEEDED
    await other.close()


async def test_leases_are_not_renewed_at_every_wake_up(still: Loops, fake_clock: FakeClock) -> None:
    run = await at_work(still)
    fake_clock.advance(timedelta(seconds=60))
    await still.parts.worker.tick()
    first = (await still.get(run)).lease.expires_at
    fake_clock.advance(timedelta(seconds=59))
    await still.parts.worker.tick()
    assert (await still.get(run)).lease.expires_at == first
    fake_clock.advance(timedelta(seconds=1))
    await still.parts.worker.tick()
    assert (await still.get(run)).lease.expires_at != first


@both
async def test_the_end_of_a_command_whose_run_was_ended_meanwhile_changes_nothing(still: Loops, name: str) -> None:
    run = await at_work(still, name)
    await still.store.transact(review.cancel, run, ctx=still.context)
    await the_command_ends(still)
    assert (await still.get(run)).state is RunState.CANCELED
    assert await still.runner.kept() == []


async def test_the_end_of_a_command_that_another_process_has_adopted_is_left_to_that_one(still: Loops) -> None:
    run = await at_work(still)
    await still.store.transact(owners.void, "own_first", ctx=still.context)
    await still.store.transact(review.adopt, review.Worker("own_second", "here"), still.clock.now())
    await the_command_ends(still)
    row = await still.get(run)
    assert (row.state, row.lease.owner) == (RunState.RUNNING, "own_second")
    assert await still.runner.kept() == [run]


@both
async def test_the_end_of_a_command_whose_run_is_gone_troubles_nobody(still: Loops, name: str) -> None:
    run = await at_work(still, name)
    await still.store.transact(lambda tx: tx.runs.delete([run]))
    await the_command_ends(still)
    assert await still.runner.kept() == []
    assert still.parts.worker.room == runs_at_once(still)


def runs_at_once(loops: Loops) -> int:
    """The room of a worker that has nothing to do."""
    return loops.build("own_third").worker.room


async def test_beside_another_process_what_ended_just_now_is_left_to_its_holder(
    still: Loops, fake_clock: FakeClock
) -> None:
    run = await at_work(still)
    for task in set(still.parts.worker.tasks.running):
        task.cancel()  # as a process that dies leaves it
    await still.parts.worker.tasks.all_done()
    await still.store.transact(review.cancel, run, ctx=still.context)
    await still.store.transact(lambda tx: tx.owners.place("own_second", "here", {}))
    await still.parts.worker.clear()
    assert await still.runner.kept() == [run]
    fake_clock.advance(timedelta(seconds=59))
    await still.parts.worker.clear()
    assert await still.runner.kept() == [run]
    fake_clock.advance(timedelta(seconds=1))
    await still.parts.worker.clear()
    assert await still.runner.kept() == []


async def test_alone_on_its_node_a_process_clears_what_ended_at_once(still: Loops) -> None:
    run = await at_work(still)
    for task in set(still.parts.worker.tasks.running):
        task.cancel()
    await still.parts.worker.tasks.all_done()
    await still.store.transact(review.cancel, run, ctx=still.context)
    await still.parts.worker.clear()
    assert await still.runner.kept() == []


class Held:
    """ActionExecutor an item of one kind on when the test lets it."""

    def __init__(self, handlers: Handlers, kind: ItemKind) -> None:
        self._handlers, self._kind = handlers, kind
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def handle(self, item: Item) -> bool:
        if item.kind == self._kind:
            self.reached.set()
            await self.go.wait()
        return await self._handlers.handle(item)

    async def stop(self) -> None:
        await self._handlers.stop()


async def test_a_stop_waits_for_what_is_being_handed_over_and_ends_it_too(loops: Loops) -> None:
    """Else a run would begin after its worker has stopped, and nobody would end it."""
    dispatcher = loops.parts.dispatcher
    held = Held(dispatcher.handlers, ItemKind.ENQUEUE_EXECUTE)
    dispatcher.handlers = cast("Handlers", held)
    await loops.add("long", agent={"prompt": "sleep 4711", "preset": "shell"})
    run = await loops.fire("long")
    async with asyncio.timeout(WITHIN):
        while not held.reached.is_set():
            await dispatcher.tick()
            await asyncio.wait(set(dispatcher.handling.running), timeout=0.1)
        stopping = asyncio.create_task(dispatcher.stop())
        done, _ = await asyncio.wait({stopping}, timeout=0.2)
        assert not done, "the item is not handed over yet"
        held.go.set()
        await stopping
    await dispatcher.handling.all_done()
    row = await loops.get(run)
    assert (row.state, row.reason) == (RunState.FAILED, "interrupted")
    assert loops.sleepers() == []


async def test_a_command_that_ignores_the_request_to_end_is_killed_before_its_run_is_interrupted(
    loops: Loops,
) -> None:
    daemon = replace(loops.city.daemon, shutdown_timeout=timedelta(milliseconds=300))
    loops.parts.active.swap(replace(loops.city, daemon=daemon), loops.rules)
    await loops.add("stubborn", exec="trap '' TERM INT HUP; echo begun; while :; do sleep 0.2; done")
    run = await loops.fire("stubborn")
    await loops.parts.dispatcher.tick()

    async def begun() -> bool:
        return "begun" in await loops.runner.tail(run)

    await loops.until(begun)
    async with asyncio.timeout(WITHIN):
        await loops.parts.dispatcher.stop()
    row = await loops.get(run)
    assert (row.state, row.reason, row.output_tail) == (RunState.FAILED, "interrupted", "begun\n")
    assert below(loops.root) == []


def below(root: Path) -> list[str]:
    """The command lines of all processes that work in this directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "cwd").readlink().is_relative_to(root):
                found.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found
