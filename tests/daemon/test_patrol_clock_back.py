"""A clock that is set back lengthens no wait of the patrol: idleness and drains hold as cooldowns do."""

import os
from collections.abc import AsyncIterator

import pytest
from patrol_town import Town, a_town, agent, pool

from lamplighter.adapters.sessions.local.shim import OUTPUT
from lamplighter.domain.sessions import meta


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with a_town("fake") as made:
        yield made


async def kinds(town: Town) -> list[str]:
    return [kind for kind, _ in await town.told()]


async def test_an_agent_that_was_silent_before_is_idle_as_soon_as_it_would_have_been(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="15m"))
    await town.patrolled()
    town.clock.advance(minutes=10)
    await town.patrolled()
    town.clock.set_back(hours=3)
    await town.patrolled()
    assert await kinds(town) == ["started"], "10 of 16 minutes have passed"
    town.clock.advance(minutes=7)
    await town.patrolled()
    assert await kinds(town) == ["started", "idle_killed", "started"]


async def test_silence_is_counted_on_after_the_clock_has_passed_the_old_time_again(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="3h"))
    await town.patrolled()
    town.clock.advance(minutes=30)
    await town.patrolled()
    town.clock.set_back(hours=1)
    for _ in range(3):  # the clock passes the recorded start half an hour later; that must not begin the wait anew
        await town.patrolled()
        town.clock.advance(minutes=40)
    assert await kinds(town) == ["started"], "2.5 of 3 hours"
    town.clock.advance(minutes=35)
    await town.patrolled()
    assert await kinds(town) == ["started", "idle_killed", "started"]


async def test_an_agent_that_works_after_the_set_back_is_not_idle(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="15m"))
    await town.patrolled()
    town.clock.advance(minutes=14)
    await town.patrolled()
    town.clock.set_back(hours=3)
    town.provider.active_at(town.session("mayor"), town.clock.now())
    await town.patrolled()
    town.clock.advance(minutes=14)
    await town.patrolled()
    assert await kinds(town) == ["started"]
    town.clock.advance(minutes=2)
    await town.patrolled()
    assert await kinds(town) == ["started", "idle_killed", "started"]


async def test_a_drain_times_out_when_it_would_have(town: Town) -> None:
    wish = town.root / "wish"
    wish.write_text("1")
    town.declare(pool("hand", most=2, check=f"cat {wish}", drain="10m"))
    await town.patrolled()
    wish.write_text("0")
    town.clock.advance(minutes=1)
    await town.patrolled()
    assert await kinds(town) == ["started", "draining"]
    town.clock.advance(minutes=4)
    await town.patrolled()
    town.clock.set_back(days=2)
    await town.patrolled()
    town.clock.advance(minutes=4)
    await town.patrolled()
    assert await kinds(town) == ["started", "draining"], "8 of 10 minutes"
    town.clock.advance(minutes=3)
    await town.patrolled()
    assert await kinds(town) == ["started", "draining", "stopped"]


async def test_two_set_backs_add_up(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="15m"))
    await town.patrolled()
    for _ in range(2):
        town.clock.advance(minutes=5)
        await town.patrolled()
        town.clock.set_back(hours=1)
        await town.patrolled()
    assert await kinds(town) == ["started"]
    town.clock.advance(minutes=7)
    await town.patrolled()
    assert await kinds(town) == ["started", "idle_killed", "started"]


async def test_a_controller_that_begins_after_the_set_back_waits_at_most_the_whole_limit(town: Town) -> None:
    town.declare(agent("mayor", idle_timeout="15m"))
    await town.patrolled()
    town.clock.set_back(hours=5)
    town.patrol = town.new_patrol()
    await town.patrolled()
    seen = town.patrol.sight[town.session("mayor")]
    assert seen.started_at is not None
    assert seen.started_at <= town.clock.now()
    town.clock.advance(minutes=14)
    await town.patrolled()
    assert "idle_killed" not in await kinds(town)
    town.clock.advance(minutes=3)
    await town.patrolled()
    assert "idle_killed" in await kinds(town)


async def test_output_after_the_set_back_is_seen_although_it_is_older_than_the_start() -> None:
    async with a_town("subprocess") as town:
        town.declare(agent("mayor"))
        await town.patrolled()
        seen = await town.seen("mayor")
        assert seen is not None
        assert seen.started_at is not None
        written = seen.started_at.timestamp() - 3600
        os.utime(town.root / ".gc/sessions" / seen.name / OUTPUT, (written, written))
        after = await town.seen("mayor")
        assert after is not None
        assert after.last_activity is not None
        assert after.last_activity.timestamp() == pytest.approx(written)


async def test_times_of_sessions_in_order_are_left_as_they_are(town: Town) -> None:
    town.declare(agent("mayor"))
    await town.patrolled()
    await town.provider.set_meta(town.session("mayor"), meta.DRAIN, "1700000000")
    town.clock.advance(hours=2)
    await town.patrolled()
    seen = await town.seen("mayor")
    assert town.patrol.sight[town.session("mayor")] == seen
