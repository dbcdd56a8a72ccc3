"""The scheduler's ticks under a clock that the test moves, and its loops from end to end."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from loops_city import Loops

from lamplighter.domain.runs.model import RunState
from lamplighter.services.automations import editing
from lamplighter.store.engine.db import Params, Row
from lamplighter.store.errors import ClockSkewed
from lamplighter.store.url import SqliteUrl
from lamplighter.testing.clock import FakeClock


@pytest.fixture
async def still(sqlite_place: SqliteUrl, tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Loops]:
    """The same parts under a clock that stands still."""
    found = Loops(sqlite_place, tmp_path, fake_clock)
    await found.store.transact(lambda tx: tx.cities.ensure("still", fake_clock.now()))
    yield found
    await found.parts.close()
    await found.store.close()


async def test_it_sleeps_exactly_until_the_next_due_time(still: Loops, fake_clock: FakeClock) -> None:
    await still.add("daily", exec="true", gate="schedule", cadence="daily", hour=9, minute=0)
    await still.add("soon", exec="true", gate="cron", schedule="*/5 * * * *")
    scheduler = still.parts.scheduler
    assert await scheduler.tick() == []
    assert scheduler.until_next() == timedelta(seconds=30)
    fake_clock.advance(timedelta(minutes=4, seconds=50))
    assert scheduler.until_next() == timedelta(seconds=10)
    fake_clock.advance(timedelta(seconds=10))
    assert scheduler.until_next() == timedelta(0)
    assert len(await scheduler.tick()) == 1


async def test_a_loop_wakes_by_itself_when_a_trigger_is_due(still: Loops, fake_clock: FakeClock) -> None:
    await still.add("soon", exec="true", gate="cron", schedule="* * * * *")
    loop = asyncio.create_task(still.parts.scheduler.loop())
    for _ in range(3):
        await fake_clock.sleepers()
        fake_clock.advance(still.parts.scheduler.until_next())
    await still.until(lambda: _some_run(still))
    loop.cancel()
    (row,) = await still.store.read(lambda tx: tx.runs.page())
    assert row.created_at == fake_clock.now()


async def _some_run(loops: Loops) -> bool:
    return bool(await loops.store.read(lambda tx: tx.runs.page()))


async def test_a_tick_with_nothing_due_asks_two_small_questions_and_writes_nothing(still: Loops) -> None:
    for number in range(50):
        await still.add(f"a{number}", exec="true", gate="schedule", cadence="daily", hour=12)
    await still.parts.scheduler.tick()
    asked: list[str] = []

    def listen(tx):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  stands in for the real read
        class Listening:
            dialect = tx.db.dialect

            def rows(self, sql: str, params: Params) -> list[Row]:
                asked.append(sql)
                return tx.db.rows(sql, params)

            def row(self, sql: str, params: Params) -> Row | None:
                asked.append(sql)
                return tx.db.row(sql, params)

        from lamplighter.services.automations import due
        from lamplighter.store.tx import Tx

        return due.peek(Tx(Listening(), tx.city), still.parts.scheduler.position or 0)  # type: ignore[arg-type]  # reads only

    peek = await still.store.read(listen)
    assert peek.unseen is False
    assert len(asked) == 2


async def test_a_skewed_clock_takes_no_work(still: Loops) -> None:
    async def offset() -> timedelta:
        return timedelta(seconds=3)

    still.store.clock_offset = offset  # type: ignore[method-assign]  # a database whose clock is elsewhere
    await still.add("now", exec="true", gate="cooldown", interval="1h")
    with pytest.raises(ClockSkewed):
        await still.parts.scheduler.tick()
    with pytest.raises(ClockSkewed):
        await still.parts.dispatcher.tick()
    assert await still.store.read(lambda tx: tx.runs.page()) == []


async def test_case_6_a_condition_fires_when_its_check_passes_and_a_hung_one_is_killed(loops: Loops) -> None:
    await loops.add("yes", exec="true", gate="condition", check="true", interval="1h")
    await loops.add("no", exec="true", gate="condition", check="exit 3")
    await loops.add("stuck", exec="true", gate="condition", check="sleep 4711 & sleep 4711", check_timeout="200ms")
    assert await loops.parts.conditions.tick() == 3
    await loops.parts.conditions.tasks.all_done()
    found = await loops.store.read(lambda tx: tx.runs.page())
    assert [row.automation for row in found] == ["yes"]
    assert loops.sleepers() == []
    rows = await loops.store.read(lambda tx: {row.automation: row.check_result for row in tx.triggers.conditions()})
    names = await loops.store.read(lambda tx: {row.scoped_name: row.id for row in tx.automations.page()})
    assert rows[names["stuck"]] == "timed out"
    assert rows[names["no"]] == "exit 3"
    assert await loops.parts.conditions.tick() == 2


async def test_a_condition_without_an_interval_is_asked_at_every_tick_also_after_it_fired(
    still: Loops, fake_clock: FakeClock
) -> None:
    await still.add("yes", exec="true", gate="condition", check="true", overlap="allow")
    for count in (1, 2):
        assert await still.parts.conditions.tick() == 1
        await still.parts.conditions.tasks.all_done()
        assert len(await still.store.read(lambda tx: tx.runs.page())) == count
        fake_clock.advance(timedelta(seconds=1))


async def test_a_condition_that_fired_is_asked_again_when_its_interval_is_over(
    still: Loops, fake_clock: FakeClock
) -> None:
    await still.add("yes", exec="true", gate="condition", check="true", interval="1h", overlap="allow")
    conditions = still.parts.conditions
    assert await conditions.tick() == 1
    await conditions.tasks.all_done()
    fake_clock.advance(timedelta(hours=1, microseconds=-1))
    assert await conditions.tick() == 0
    fake_clock.advance(timedelta(microseconds=1))
    assert await conditions.tick() == 1
    await conditions.tasks.all_done()
    assert len(await still.store.read(lambda tx: tx.runs.page())) == 2


async def test_conditions_are_not_asked_in_a_paused_city(loops: Loops) -> None:
    await loops.add("yes", exec="true", gate="condition", check="true")
    await loops.store.transact(editing.pause, ctx=loops.context)
    assert await loops.parts.conditions.tick() == 0


async def test_from_event_to_finished_run_by_wake_ups_alone(loops: Loops) -> None:
    await loops.add("hears", exec="cat $LAMP_TRIGGER_FILE", gate="event", on="x.y")
    children = [asyncio.create_task(child.run()) for child in loops.parts.children()]
    await loops.store.transact(lambda tx: tx.events.append(loops.context.event("x.y", payload={"n": 1})))
    await loops.until(lambda: _ended(loops))
    for child in reversed(children):
        child.cancel()
    (row,) = await loops.store.read(lambda tx: tx.runs.page())
    assert row.state is RunState.SUCCEEDED
    assert '"payload": {"n": 1}' in row.output_tail


async def _ended(loops: Loops) -> bool:
    found = await loops.store.read(lambda tx: tx.runs.page())
    return bool(found) and all(row.ended for row in found)


async def test_a_second_worker_adopts_what_the_first_left_running(loops: Loops) -> None:
    """The first is cut off without a word, as a crash does; its command waits for the test."""

    os.mkfifo(loops.root / "go")
    await loops.add("slow", exec="cat go; echo end")
    run = await loops.fire("slow")
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    async with asyncio.timeout(30):
        while not await loops.runner.kept():
            await asyncio.to_thread(os.sched_yield)
    writer = await asyncio.to_thread((loops.root / "go").open, "w")
    for task in tuple(loops.parts.worker.tasks.running):
        task.cancel()
    await loops.parts.worker.tasks.all_done()
    assert (await loops.get(run)).state is RunState.RUNNING
    from lamplighter.services import owners
    from lamplighter.store.owners import Owner

    dead = Owner("own_first", "controller", "here", 1, loops.clock.now())
    await loops.store.transact(owners.expire, dead, ctx=loops.context)
    second = loops.build("own_second")
    await second.dispatcher.tick()
    writer.close()
    async with asyncio.timeout(30):
        await second.worker.tasks.all_done()
    row = await loops.get(run)
    assert (row.state, row.output_tail) == (RunState.SUCCEEDED, "end\n")


async def test_a_trigger_that_cannot_be_dealt_with_is_put_aside_and_the_others_fire(still: Loops) -> None:
    for name in ("a", "bad", "z"):
        await still.add(name, exec="true", gate="cooldown", interval="1h")
    refuse = """CREATE TRIGGER refuse BEFORE INSERT ON runs WHEN NEW.automation = 'bad'
        BEGIN SELECT RAISE(ABORT, 'not this one'); END"""
    await still.store.transact(lambda tx: tx.db.execute(refuse, {}))
    fired = await still.parts.scheduler.tick()
    assert len(fired) == 2
    assert await still.parts.scheduler.tick() == []
    told = await still.store.read(lambda tx: tx.events.after_of_type("automation.error", 0))
    assert [(event.subject, "not this one" in (event.message or "")) for event in told] == [("bad", True)]


async def test_an_automation_of_a_rig_that_is_gone_is_skipped(loops: Loops) -> None:
    await loops.add("lost", exec="true", rig="nowhere")
    row = await loops.work("lost:rig:nowhere")
    assert (row.state, row.reason) == (RunState.SKIPPED, "project_missing")


async def test_a_clock_set_back_is_noticed_at_the_next_tick_and_the_cooldown_goes_on(
    still: Loops, fake_clock: FakeClock
) -> None:
    await still.add("often", exec="true", gate="cooldown", interval="5s", overlap="allow")
    scheduler = still.parts.scheduler
    assert len(await scheduler.tick()) == 1
    fake_clock.advance(1)
    fake_clock.set_back(timedelta(days=1))
    assert await scheduler.tick() == []
    assert scheduler.until_next() == timedelta(seconds=4)
    fake_clock.advance(4)
    assert len(await scheduler.tick()) == 1


async def test_a_clock_set_back_while_the_city_was_down_is_noticed_at_the_first_tick(
    still: Loops, fake_clock: FakeClock
) -> None:
    await still.add("often", exec="true", gate="cooldown", interval="5s", overlap="allow")
    assert len(await still.parts.scheduler.tick()) == 1
    fake_clock.set_back(timedelta(days=1))
    await still.store.transact(lambda tx: tx.events.append(still.context.event("controller.started")))
    scheduler = still.build("own_second").scheduler
    assert await scheduler.tick() == []
    fake_clock.advance(5)
    assert len(await scheduler.tick()) == 1


async def test_a_machine_whose_clock_alone_was_set_back_changes_nothing(still: Loops, fake_clock: FakeClock) -> None:
    await still.add("often", exec="true", gate="cooldown", interval="5s", overlap="allow")
    scheduler = still.parts.scheduler
    assert len(await scheduler.tick()) == 1

    async def offset() -> timedelta:
        return timedelta(minutes=1)

    fake_clock.set_back(timedelta(minutes=1))
    still.store.clock_offset = offset  # type: ignore[method-assign]  # the database's clock stayed
    with pytest.raises(ClockSkewed):
        await scheduler.tick()
    assert (await still.store.read(lambda tx: tx.triggers.all()))[0].state.last_fired_at > fake_clock.now()
