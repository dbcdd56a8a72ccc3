"""How many instances pools need and which are at work: asked as seldom as may be, and a failure is not an answer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from patrol_town import HEAD, agent, pool

from lamplighter.adapters.files.layers import load_city
from lamplighter.daemon.patrol import busy as busy_module
from lamplighter.daemon.patrol.busy import BusyInstances
from lamplighter.daemon.patrol.demand import SIDE_BY_SIDE, Demand
from lamplighter.domain.city.wanted import Roster, roster
from lamplighter.kit.errors import Unavailable
from lamplighter.testing.clock import FakeClock

FLOOR = timedelta(seconds=30)


class Beads:
    """Answers what it was told to answer; while `held` it does not answer at all."""

    def __init__(self) -> None:
        self.wanted: dict[str, int] = {}
        self.at_work: frozenset[str] = frozenset()
        self.trouble: Exception | None = None
        self.held: asyncio.Event | None = None
        self.asked: list[str] = []
        self.most_at_once = self.now = 0

    async def _answer(self, who: str) -> None:
        self.asked.append(who)
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        if self.held is not None:
            await self.held.wait()
        self.now -= 1
        if self.trouble is not None:
            raise self.trouble

    async def demand(self, name: str) -> int:
        await self._answer(name)
        return self.wanted.get(name, 0)

    async def check(self, _loaded: object, declared: Any) -> int:
        await self._answer(declared.qualified_name)
        return self.wanted.get(declared.qualified_name, 0)

    async def busy(self) -> frozenset[str]:
        await self._answer("busy")
        return self.at_work


class Asker:
    def __init__(self, root: Path) -> None:
        self.root, self.clock, self.beads = root, FakeClock(), Beads()
        self.changes = 0
        self.demand = Demand(self.beads.check, cast("Any", self.beads), self.clock, self._changed)
        self.roster: Roster = self.declare(agent("mayor"))

    def _changed(self) -> None:
        self.changes += 1

    def declare(self, text: str) -> Roster:
        (self.root / "city.toml").write_text(HEAD + text)
        self.roster = roster(load_city(self.root, env={}))
        return self.roster

    async def ask(self) -> list[str]:
        """Which pools are asked, until all have answered."""
        self.beads.asked.clear()
        self.demand.refresh(self.roster.loaded, self.roster.pools, FLOOR)
        await self.demand.settled()
        return sorted(self.beads.asked)


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    (tmp_path / ".gc").mkdir()
    made = Asker(tmp_path)
    yield made
    await made.demand.close()


async def test_a_pool_with_a_check_is_asked_once_in_a_while_and_one_without_each_time(asker: Asker) -> None:
    asker.declare(pool("own", most=2, check="echo 1") + pool("beads", most=2) + pool("none", most=0))
    assert await asker.ask() == ["beads", "own"]
    assert asker.demand.known == {"own": 0, "beads": 0}
    assert await asker.ask() == ["beads"]
    asker.clock.advance(FLOOR - timedelta(seconds=1))
    assert await asker.ask() == ["beads"]
    asker.clock.advance(1)
    assert await asker.ask() == ["beads", "own"]


async def test_the_patrol_is_told_of_the_first_answer_and_of_another_one(asker: Asker) -> None:
    asker.declare(pool("beads", most=2))
    await asker.ask()
    assert asker.changes == 1
    await asker.ask()
    assert asker.changes == 1
    asker.beads.wanted["beads"] = 2
    await asker.ask()
    assert (asker.changes, asker.demand.known) == (2, {"beads": 2})


@pytest.mark.parametrize("trouble", [Unavailable("The beads are away."), OSError(5, "Input/output error")])
async def test_a_failure_is_no_answer_and_is_told_until_there_is_one(asker: Asker, trouble: Exception) -> None:
    asker.declare(pool("beads", most=2))
    await asker.ask()
    asker.beads.trouble = trouble
    await asker.ask()
    assert (asker.demand.known, asker.changes) == ({"beads": None}, 2)
    assert str(trouble) == asker.demand.problems["beads"]
    asker.beads.trouble = None
    await asker.ask()
    assert (asker.demand.known, asker.demand.problems, asker.changes) == ({"beads": 0}, {}, 3)


async def test_a_pool_that_has_not_answered_is_not_asked_again_and_many_are_asked_a_few_at_a_time(asker: Asker) -> None:
    asker.declare("".join(pool(f"own-{number}", most=1, check="x") for number in range(SIDE_BY_SIDE + 3)))
    asker.beads.held = asyncio.Event()
    for _ in range(2):
        asker.demand.refresh(asker.roster.loaded, asker.roster.pools, timedelta(0))
        for _ in range(20):
            await asyncio.sleep(0)
    assert len(asker.beads.asked) == SIDE_BY_SIDE
    asker.beads.held.set()
    await asker.demand.settled()
    assert (len(asker.beads.asked), asker.beads.most_at_once) == (SIDE_BY_SIDE + 3, SIDE_BY_SIDE)


async def test_what_is_known_of_a_pool_goes_with_it(asker: Asker) -> None:
    asker.declare(pool("beads", most=2) + pool("own", most=2, check="x"))
    asker.beads.trouble = Unavailable("The beads are away.")
    await asker.ask()
    asker.declare(pool("beads", most=2))
    await asker.ask()
    assert (list(asker.demand.known), list(asker.demand.problems)) == (["beads"], ["beads"])
    asker.declare(pool("beads", most=2) + pool("own", most=2, check="x"))
    assert await asker.ask() == ["beads", "own"], "it is asked at once when it comes back"


async def test_while_it_is_not_known_who_is_at_work_all_that_run_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_module, "PATIENCE_SECONDS", 0.01)
    beads, changes = Beads(), 0

    def changed() -> None:
        nonlocal changes
        changes += 1

    busy = BusyInstances(cast("Any", beads), changed)
    running = frozenset({"crew-1", "crew-2"})
    beads.at_work = frozenset({"crew-1"})
    assert await busy.ask(running) == {"crew-1"}
    beads.trouble = Unavailable("The beads are away.")
    assert (await busy.ask(running), busy.problem) == (running, "The beads are away.")
    beads.trouble, beads.held, beads.at_work = None, asyncio.Event(), frozenset({"crew-9"})
    for _ in range(2):
        assert await busy.ask(running) == running
    assert "does not answer" in (busy.problem or "")
    assert beads.asked == ["busy"] * 3, "it is asked once, however often the patrol looks"
    assert changes == 0
    beads.held.set()
    async with asyncio.timeout(30):
        while not changes:  # noqa: ASYNC110  each turn of the event loop, without any time
            await asyncio.sleep(0)
    beads.held = None
    assert (await busy.ask(running), busy.problem, changes) == ({"crew-9"}, None, 1)
    await busy.close()
