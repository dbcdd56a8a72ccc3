"""The patrol when things meet: an end during an action, a change during a look, sessions that are not its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from patrol_town import Town, a_town, agent

from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.testing.puppets import until


class Gated(FakeProvider):
    """Holds a start that has been made, or a look that has been taken, until the test lets it go on."""

    start_held: asyncio.Event | None = None
    look_held: asyncio.Event | None = None
    reached: asyncio.Event

    async def start(self, spec: SessionSpec) -> Seen:
        found = await super().start(spec)
        held, self.start_held = self.start_held, None
        await self._hold(held)
        return found

    async def seen(self) -> Mapping[SessionName, Seen]:
        found = await super().seen()
        held, self.look_held = self.look_held, None
        await self._hold(held)
        return found

    async def _hold(self, gate: asyncio.Event | None) -> None:
        if gate is not None:
            self.reached.set()
            await gate.wait()


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        made.provider = Gated(made.clock, made.ids, city=made.city_id, world=made.world)
        made.provider.reached = asyncio.Event()
        made.declare(agent("mayor"))
        yield made


def starts(town: Town) -> int:
    return sum(call[0] == "start" for call in town.provider.calls)


async def test_a_session_that_ends_while_its_start_is_being_finished_is_relit_without_another_look(town: Town) -> None:
    gate = town.provider.start_held = asyncio.Event()
    running = asyncio.create_task(town.patrol.run())
    await town.patrol.tick()
    async with asyncio.timeout(10):
        await town.provider.reached.wait()
    town.provider.end(town.session("mayor"), 3)
    await asyncio.wait({running}, timeout=0.05)  # the end is heard while the start is under way
    assert starts(town) == 1
    gate.set()

    async def relit() -> bool:
        return starts(town) == 2

    await until(relit)
    running.cancel()
    await asyncio.wait({running})
    await town.patrol.settled()
    assert await town.alive() == ["mayor"]


async def test_a_look_does_not_overwrite_what_changed_while_it_was_taken(town: Town) -> None:
    await town.patrolled()
    name = town.session("mayor")
    before = town.patrol.sight[name].session_id
    gate = town.provider.look_held = asyncio.Event()
    looking = asyncio.create_task(town.patrol.tick())
    async with asyncio.timeout(10):
        await town.provider.reached.wait()
        assert await town.patrol.kill(name, "ada")
        gate.set()
        await looking
    seen = town.patrol.sight.get(name)
    assert seen is None or seen.session_id != before
    await town.patrol.settled()
    assert starts(town) == 2


async def test_a_look_leaves_in_sight_what_was_started_while_it_was_taken(town: Town) -> None:
    """It would be started a second time, were it forgotten."""
    gate = town.provider.look_held = asyncio.Event()
    first = asyncio.create_task(town.patrol.tick())
    async with asyncio.timeout(10):
        await town.provider.reached.wait()
        held = town.provider.start_held = asyncio.Event()
        gate.set()
        await first
        town.provider.reached.clear()
        second_look = town.provider.look_held = asyncio.Event()
        second = asyncio.create_task(town.patrol.tick())
        held.set()
        second_look.set()
        await second
    await town.patrol.settled()
    assert starts(town) == 1
    assert await town.alive() == ["mayor"]


async def test_the_session_of_a_run_is_none_of_the_patrol_s(town: Town) -> None:
    name = SessionName("run_1")
    spec = SessionSpec(name=name, command=("sleep", "600"), work_dir=str(town.root))
    await town.provider.start(replace(spec, meta={meta.RUN: "run_1"}))
    town.provider.calls.clear()
    await town.patrolled()
    town.clock.shift += timedelta(hours=2)
    await town.patrolled()
    assert [call for call in town.provider.calls if name in call] == []
    assert await town.store.read(lambda tx: tx.agents.latest(name)) == []
    assert {subject for _, subject in await town.told()} == {"mayor"}
