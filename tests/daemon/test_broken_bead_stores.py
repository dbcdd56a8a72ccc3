"""A bead store that is missing, broken or hung costs what needs beads, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from patrol_town import Town, a_town, agent, pool

from lamplighter.app.bead_readiness import BeadReadiness
from lamplighter.app.create import create_city
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import OpenCity, open_city
from lamplighter.daemon.patrol import busy
from lamplighter.domain.sessions import meta
from lamplighter.kit.errors import LampError, Unavailable


class BrokenWork:
    """The work of agents in a bead store that fails, until it is mended; `hang` lets questions wait for ever."""

    def __init__(self) -> None:
        self.broken = True
        self.hang = False
        self.at_work: frozenset[str] = frozenset()

    async def busy(self) -> frozenset[str]:
        await self._look()
        return self.at_work

    async def demand(self, _pool: str) -> int:
        await self._look()
        return 0

    async def free(self, _instance: str) -> int:
        await self._look()
        return 0

    async def _look(self) -> None:
        if self.hang:
            await asyncio.Event().wait()
        if self.broken:
            raise Unavailable("bd cannot be run: No such file or directory.")


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        yield made


def _with(town: Town, work: BrokenWork, text: str) -> None:
    town.declare(text)
    town.patrol.busy.work = work
    town.patrol.demand.work = work


async def test_agents_and_the_least_members_of_a_pool_start_and_the_pool_is_told(town: Town) -> None:
    _with(town, BrokenWork(), agent("mayor") + pool("hand", most=3, least=1))
    await town.patrolled()
    assert await town.alive() == ["hand-1", "mayor"]
    assert "bd cannot be run" in town.patrol.problems["pool hand"]
    assert "bd cannot be run" in town.patrol.problems["beads"]


async def test_a_dead_agent_is_relit_and_a_member_of_a_pool_that_may_be_at_work_is_kept(town: Town) -> None:
    work = BrokenWork()
    work.broken = False
    wish = town.root / "wish"
    wish.write_text("2\n")
    _with(town, work, agent("mayor") + pool("hand", most=2, check=f"cat {wish}"))
    await town.patrolled()
    work.broken = True
    wish.write_text("0\n")
    town.clock.advance(minutes=1)
    await town.crash("mayor", "oil")
    await town.patrolled()
    assert await town.alive() == ["hand-1", "hand-2", "mayor"]
    assert await town.events("agent.draining") == []
    work.broken = False
    await town.patrolled()
    assert len(await town.events("agent.draining")) == 2
    assert "beads" not in town.patrol.problems


async def test_a_store_that_hangs_holds_up_nobody(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "PATIENCE_SECONDS", 0.01)
    work = BrokenWork()
    work.hang = True
    _with(town, work, agent("mayor") + pool("hand", most=2, least=1, check="echo 1"))
    await town.patrolled()
    assert await town.alive() == ["hand-1", "mayor"]
    assert "does not answer" in town.patrol.problems["beads"]


async def test_a_changed_agent_without_a_bead_is_restarted_although_the_store_is_broken(town: Town) -> None:
    _with(town, BrokenWork(), agent("mayor"))
    await town.patrolled()
    town.declare(agent("mayor", 'start_command = "sleep 601"\n'))
    await town.patrolled()
    town.clock.advance(minutes=2)
    await town.patrolled()
    seen = await town.seen("mayor")
    assert seen is not None
    assert meta.DRAIN not in seen.meta


def _city(root: Path, script: str) -> OpenCity:
    root.mkdir()
    (root / "beads.sh").write_text("#!/bin/sh\n" + script)
    (root / "beads.sh").chmod(0o755)
    (root / "city.toml").write_text('[workspace]\nname = "town"\n[beads]\nprovider = "exec:./beads.sh"\n')
    settings = Settings(cwd=root, city=root, actor="test", run=None, env={"PATH": "/usr/bin:/bin"})
    create_city(root, settings)
    return open_city(settings)


async def test_a_script_that_fails_at_the_start_is_tried_again_until_it_is_ready(tmp_path: Path) -> None:
    city = _city(tmp_path / "town", 'echo "$1" >> calls; [ -e mended ] || { echo "no disk" >&2; exit 1; }\n')
    readiness = BeadReadiness(city)
    await readiness.begin()
    with pytest.raises(LampError, match="no disk"):
        await readiness.tick()
    (tmp_path / "town/mended").touch()
    await readiness.tick()
    await readiness.tick()
    assert (tmp_path / "town/calls").read_text().split() == ["ensure-ready", "ensure-ready", "ensure-ready", "init"]
    city.close()
