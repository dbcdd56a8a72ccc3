"""The patrol when things meet: an end during an action, a change during a look, sessions that are not its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from patrol_town import Town, a_town, agent

from lamplighter.adapters.sessions.fake import FakeProvider
from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen, SessionName, SessionSpec
from lamplighter.ports.sessions import GRACE
from lamplighter.testing.puppets import until


class Gated(FakeProvider):
    """Holds the next call at a named point until the test lets it go on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._gates: dict[str, Gate] = {}

    def hold(self, point: str) -> "Gate":
        """`start` and `stop`: before it is done; `started` and `look`: after, and before it is told."""
        self._gates[point] = Gate()
        return self._gates[point]

    async def start(self, spec: SessionSpec) -> Seen:
        await self._pass("start")
        found = await super().start(spec)
        await self._pass("started")
        return found

    async def stop(self, name: SessionName, *, grace: timedelta = GRACE) -> None:
        await self._pass("stop")
        await super().stop(name, grace=grace)

    async def seen(self) -> Mapping[SessionName, Seen]:
        found = await super().seen()
        await self._pass("look")
        return found

    async def _pass(self, point: str) -> None:
        gate = self._gates.pop(point, None)
        if gate is not None:
            gate.reached.set()
            await gate.opened.wait()


class Gate:
    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        """Until somebody stands before it."""
        async with asyncio.timeout(10):
            await self.reached.wait()

    def open(self) -> None:
        self.opened.set()


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        made.provider = Gated(made.clock, made.ids, city=made.city_id, world=made.world)
        made.declare(agent("mayor"))
        yield made


def starts(town: Town) -> int:
    return sum(call[0] == "start" for call in town.provider.calls)


async def test_a_session_that_ends_while_its_start_is_being_finished_is_relit_without_another_look(town: Town) -> None:
    gate = town.provider.hold("started")
    running = asyncio.create_task(town.patrol.run())
    await town.patrol.tick()
    await gate.wait()
    town.provider.end(town.session("mayor"), 3)
    await asyncio.wait({running}, timeout=0.05)  # the end is heard while the start is under way
    assert starts(town) == 1
    gate.open()

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
    gate = town.provider.hold("look")
    looking = asyncio.create_task(town.patrol.tick())
    await gate.wait()
    assert await town.patrol.kill(name, "ada")
    gate.open()
    await looking
    seen = town.patrol.sight.get(name)
    assert seen is None or seen.session_id != before
    await town.patrol.settled()
    assert starts(town) == 2


async def test_a_look_does_not_overwrite_what_an_action_under_way_has_changed(town: Town) -> None:
    """The action stops the session and cannot start it again: a look from before must not call it alive."""
    await town.patrolled()
    name = town.session("mayor")
    await town.provider.set_meta(name, meta.RESTART_REQUESTED, "by ada")
    stop = town.provider.hold("stop")
    await town.patrol.tick()
    await stop.wait()
    look = town.provider.hold("look")
    looking = asyncio.create_task(town.patrol.tick())
    await look.wait()
    start = town.provider.hold("start")
    town.provider.no_start[name] = "no disk"
    stop.open()
    await start.wait()
    look.open()
    await looking
    start.open()

    async def tried() -> bool:
        return "agent mayor" in town.patrol.problems

    await until(tried)
    assert name not in town.patrol.sight


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
