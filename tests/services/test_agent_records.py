"""Starts and sessions on record, on both databases."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lamplighter.domain.sessions.crashes import CrashLimit, quarantined_until
from lamplighter.domain.sessions.model import SessionName
from lamplighter.services import sessions
from lamplighter.services.context import acting
from lamplighter.services.sessions import Began, Ended, Noted
from lamplighter.store.agents import AgentStart
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Store
from lamplighter.store.url import Place, open_store
from lamplighter.testing.clock import FakeClock

ALPHA = SessionName("alpha")


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    opened = open_store(place, "cty_1", Wakes())
    yield opened
    await opened.close()


def began(clock: FakeClock, number: int, *, failure: str | None = None) -> Began:
    at = clock.now()
    ended = at if failure else None
    start = AgentStart(f"ast_{number}", ALPHA, "mayor", f"ses_{number}", at, "initial start", failure, ended_at=ended)
    row = SessionRow(f"ses_{number}", ALPHA, "mayor", None, "subprocess", "here", 100 + number, at)
    return Began(start, None if failure else row, acting("controller", at).event("agent.started", subject="mayor"))


async def test_a_life_is_recorded_from_its_start_to_its_end(store: Store, fake_clock: FakeClock) -> None:
    await store.transact(sessions.record, [began(fake_clock, 1)])
    fake_clock.advance(10)
    end = SessionEnd(fake_clock.now(), "its program ended with status 3", 3, "no oil")
    await store.transact(sessions.record, [Ended(ALPHA, "ses_1", end, wished=False)])
    (start,) = await store.read(lambda tx: tx.agents.latest(ALPHA))
    row = await store.read(lambda tx: tx.sessions.get("ses_1"))
    assert (start.exit_status, start.ended_at, start.wished) == (3, end.at, False)
    assert row is not None
    assert (row.exit_status, row.output_tail, row.ended_at) == (3, "no oil", end.at)


async def test_recording_twice_changes_nothing(store: Store, fake_clock: FakeClock) -> None:
    facts = [began(fake_clock, 1)]
    await store.transact(sessions.record, facts)
    await store.transact(sessions.record, facts)
    assert len(await store.read(lambda tx: tx.agents.latest(ALPHA))) == 1
    assert len(await store.read(lambda tx: tx.sessions.latest())) == 1


async def test_what_is_remembered_quarantines_and_is_forgotten_by_a_person(store: Store, fake_clock: FakeClock) -> None:
    for number in range(3):
        await store.transact(sessions.record, [began(fake_clock, number, failure="no")])
        fake_clock.advance(1)
    since = fake_clock.now() - timedelta(hours=1)
    found = await store.read(sessions.remembered, since=since)
    history = found.histories[ALPHA]
    limit = CrashLimit(3)
    until = quarantined_until(history, limit, fake_clock.now())
    assert until is not None
    await store.transact(sessions.record, [Noted(ALPHA, history)])
    event = acting("human", fake_clock.now()).event("agent.unquarantined", subject="mayor")
    await store.transact(sessions.unquarantine, ALPHA, event)
    after = (await store.read(sessions.remembered, since=since)).histories[ALPHA]
    assert quarantined_until(after, limit, fake_clock.now()) is None


async def test_open_lives_are_remembered_however_old(store: Store, fake_clock: FakeClock) -> None:
    await store.transact(sessions.record, [began(fake_clock, 1)])
    fake_clock.advance(timedelta(days=300))
    found = await store.read(sessions.remembered, since=fake_clock.now() - timedelta(hours=1))
    assert found.open_ids == {ALPHA: "ses_1"}


async def test_old_ended_records_are_pruned_and_living_ones_stay(store: Store, fake_clock: FakeClock) -> None:
    await store.transact(sessions.record, [began(fake_clock, 1)])
    await store.transact(
        sessions.record,
        [Ended(ALPHA, "ses_1", SessionEnd(fake_clock.now(), "drained"), wished=True), began(fake_clock, 2)],
    )
    fake_clock.advance(timedelta(days=40))
    assert await store.transact(sessions.prune, before=fake_clock.now() - timedelta(days=30)) == 2
    assert [row.id for row in await store.read(lambda tx: tx.sessions.latest())] == ["ses_2"]
