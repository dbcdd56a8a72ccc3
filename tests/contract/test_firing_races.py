"""Two processes at once on PostgreSQL: one run a slot, one holder a run, one end, whatever order they commit in."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs.model import By, Mover, RunState, Stage
from lamplighter.domain.runs.target import How, Target
from lamplighter.kit.errors import Conflict
from lamplighter.kit.ids import IdSource
from lamplighter.services import outbox, owners
from lamplighter.services.automations import due, editing, firing, snapshots
from lamplighter.services.context import Context, acting
from lamplighter.services.rules import Rules
from lamplighter.services.runs import enriching, executing, review
from lamplighter.services.runs.workers import StartGrant
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.owners import Owner
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import PostgresUrl, open_store
from lamplighter.testing.contracts.store import AT, CITY

ROUNDS = 12
RULES = Rules(ZoneInfo("UTC"))


@pytest.fixture
async def rivals(postgres_place: PostgresUrl) -> AsyncIterator[list[Store]]:
    stores = [open_store(postgres_place, CITY, Wakes()) for _ in range(2)]
    await stores[0].transact(lambda tx: tx.cities.ensure("here", AT))
    yield stores
    for store in stores:
        await store.close()


async def add(store: Store, ids: IdSource, name: str, **keys: Any) -> None:
    body = {"name": name, "gate": "manual"} | ({} if "agent" in keys else {"exec": "true"}) | keys
    await store.transact(editing.create, body, rules=RULES, ctx=acting("tester", AT, ids))


def context(seconds: float = 0) -> Context:
    return acting("tester", AT + timedelta(seconds=seconds))


async def all_runs(store: Store) -> list[Any]:
    return await store.read(lambda tx: tx.runs.page(limit=1000))


async def test_two_schedulers_make_one_run_of_a_due_trigger(rivals: list[Store], ids: IdSource) -> None:
    for number in range(40):
        await add(rivals[0], ids, f"a{number}", gate="cooldown", interval="1h")
    for _ in range(3):
        await asyncio.gather(
            *(store.transact(due.fire_due, limit=10, rules=RULES, ctx=context()) for store in rivals * 3)
        )
    names = [row.automation for row in await all_runs(rivals[0])]
    assert sorted(names) == sorted(f"a{number}" for number in range(40))


async def test_a_person_and_the_scheduler_do_not_run_it_side_by_side(rivals: list[Store], ids: IdSource) -> None:
    one, two = rivals
    for number in range(ROUNDS):
        await add(one, ids, f"a{number}", gate="cooldown", interval="1h")
        wanted = firing.ByHand(f"a{number}")
        await asyncio.gather(
            one.transact(due.fire_due, limit=10, rules=RULES, ctx=context()),
            two.transact(firing.run_by_hand, wanted, rules=RULES, ctx=context()),
            return_exceptions=True,
        )
    names = [row.automation for row in await all_runs(one)]
    assert sorted(names) == sorted(f"a{number}" for number in range(ROUNDS))


async def test_an_item_is_claimed_by_one(rivals: list[Store], ids: IdSource) -> None:
    for number in range(60):
        await add(rivals[0], ids, f"a{number}", gate="cooldown", interval="1h")
    await rivals[0].transact(due.fire_due, limit=100, rules=RULES, ctx=context())
    taken = await asyncio.gather(
        *(rivals[n % 2].transact(outbox.claim_due, f"own_{n}", AT, limit=10) for n in range(8))
    )
    claimed = [item.id for batch in taken for item in batch]
    assert len(claimed) == len(set(claimed))


async def test_a_cancel_and_an_end_at_once_leave_one_end(rivals: list[Store], ids: IdSource) -> None:
    one, two = rivals
    await add(one, ids, "a", overlap="allow")
    for _ in range(ROUNDS):
        fired = await one.transact(firing.run_by_hand, firing.ByHand("a"), rules=RULES, ctx=context())
        (item,) = await one.transact(outbox.claim_due, "own_1", AT, limit=1, run=fired.run)
        started = await one.transact(review.start, item, review.Worker("own_1", "here"), AT)
        assert started is not None
        by = By(Mover.WORKER, "worker", started.row.lease.version)
        outcomes = await asyncio.gather(
            one.transact(review.end, fired.run, review.Ending(RunState.SUCCEEDED), by, ctx=context()),
            two.transact(review.cancel, fired.run, ctx=context()),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1
        events = await one.read(lambda tx, run=fired.run: tx.runs.events(run))
        assert sum(event.to_state in {"succeeded", "canceled"} for event in events) == 1


async def test_a_dead_owner_is_buried_by_one_and_its_run_adopted_by_one(rivals: list[Store], ids: IdSource) -> None:
    one, two = rivals
    await add(one, ids, "a", overlap="allow")
    for number in range(ROUNDS):
        dead = Owner(f"own_{number}", "worker", "here", 1, AT)
        await one.transact(owners.register, dead)
        fired = await one.transact(firing.run_by_hand, firing.ByHand("a"), rules=RULES, ctx=context())
        (item,) = await one.transact(outbox.claim_due, dead.id, AT, limit=1, run=fired.run)
        await one.transact(review.start, item, review.Worker(dead.id, "here"), AT)
        buried = await asyncio.gather(*(store.transact(owners.expire, dead, ctx=context()) for store in rivals))
        assert sum(outcome is not None for outcome in buried) == 1
        adopted = await asyncio.gather(
            one.transact(review.adopt, review.Worker("own_x", "here"), AT),
            two.transact(review.adopt, review.Worker("own_y", "here"), AT),
        )
        assert [row.id for rows in adopted for row in rows] == [fired.run]
        (holder,) = [row.lease for rows in adopted for row in rows]
        by = By(Mover.WORKER, "worker", holder.version)
        await one.transact(review.end, fired.run, review.Ending(RunState.SUCCEEDED), by, ctx=context())


async def test_an_edit_and_a_firing_at_once_lose_nothing_of_each_other(rivals: list[Store], ids: IdSource) -> None:
    """Case 4: a state write races a definition's edit."""
    one, two = rivals
    for number in range(ROUNDS):
        name = f"a{number}"
        await add(one, ids, name, gate="cooldown", interval="1h")
        await asyncio.gather(
            one.transact(due.fire_due, limit=100, rules=RULES, ctx=context()),
            two.transact(editing.edit, name, {"description": "new"}, rules=RULES, ctx=context()),
        )
        await one.transact(due.fire_due, limit=100, rules=RULES, ctx=context())  # it may have been locked before
        row = await one.read(editing.get, name)
        (trigger,) = await one.read(lambda tx, row=row: tx.triggers.of(row.id))
        assert '"description": "new"' in (row.definition or "")
        assert trigger.state.last_fired_at == AT
        assert len(await one.read(lambda tx, name=name: tx.runs.page(automation=name))) == 1


async def test_runs_that_have_nothing_to_do_with_each_other_do_not_wait_for_each_other(
    rivals: list[Store], ids: IdSource
) -> None:
    """One transaction holds the automation and waits until another that holds it too has committed."""
    await add(rivals[0], ids, "free", overlap="allow")
    await add(rivals[0], ids, "single", overlap="skip")
    held, other_is_done = threading.Event(), threading.Event()

    def hold(tx: Tx, names: list[str]) -> bool:
        tx.automations.lock_some_named(names, stays=snapshots.side_by_side)
        held.set()
        return other_is_done.wait(1.0)

    async def beside(names: list[str]) -> bool:
        other_is_done.clear()
        holding = asyncio.create_task(rivals[0].transact(hold, names))
        await asyncio.sleep(
            0.2
        )  # it holds them by then; if it did not, nobody would wait, and the second half shows it
        wanted = firing.ByHand(names[0])
        fired = asyncio.create_task(rivals[1].transact(firing.run_by_hand, wanted, rules=RULES, ctx=context()))
        fired.add_done_callback(lambda _task: other_is_done.set())
        await fired
        return await holding

    assert await beside(["free"])
    assert not await beside(["single"])


async def test_a_changed_policy_waits_for_those_who_go_by_the_old_one(rivals: list[Store], ids: IdSource) -> None:
    await add(rivals[0], ids, "free", overlap="allow")
    held, changed = threading.Event(), threading.Event()

    def hold(tx: Tx) -> bool:
        tx.automations.lock_some_named(["free"], stays=snapshots.side_by_side)
        held.set()
        return changed.wait(0.5)

    holding = asyncio.create_task(rivals[0].transact(hold))
    assert await asyncio.to_thread(held.wait, 10)
    change = asyncio.create_task(
        rivals[1].transact(editing.edit, "free", {"overlap": "skip"}, rules=RULES, ctx=context())
    )
    change.add_done_callback(lambda _task: changed.set())
    assert not await holding
    await change
    first, second = await asyncio.gather(
        *(store.transact(firing.run_by_hand, firing.ByHand("free"), rules=RULES, ctx=context()) for store in rivals),
        return_exceptions=True,
    )
    assert {type(first), type(second)} == {firing.Fired, firing.AlreadyRunning}


async def test_runs_that_start_and_end_all_the_time_leave_nothing_behind(rivals: list[Store], ids: IdSource) -> None:
    """Two processes fire, start at once and end, good and bad, of one automation: counts and ends are those of each."""
    await add(rivals[0], ids, "free", overlap="allow")
    workers = [review.Worker(f"own_{number}", "here") for number in range(2)]

    async def one(number: int) -> None:
        store, worker = rivals[number % 2], workers[number % 2]
        start_grant = StartGrant(worker, 1)
        wanted = firing.ByHand("free")
        fired = await store.transact(firing.run_by_hand, wanted, rules=RULES, ctx=context(), start_grant=start_grant)
        assert fired.started is not None
        state = RunState.FAILED if number % 7 == 0 else RunState.SUCCEEDED
        by = By(Mover.WORKER, "worker", 1)
        await store.transact(review.end_held, fired.started.row, review.Ending(state), by, ctx=context(1))

    await asyncio.gather(*(one(number) for number in range(210)))
    states = Counter(row.state for row in await all_runs(rivals[0]))
    assert states == {RunState.FAILED: 30, RunState.SUCCEEDED: 180}
    settled = await rivals[0].read(
        lambda tx: tx.db.rows("SELECT status, count(*) AS count FROM trigger_events GROUP BY status", {})
    )
    assert {row["status"]: row["count"] for row in settled} == {"completed": 180, "failed": 30}
    beads = await rivals[0].read(lambda tx: tx.db.rows("SELECT DISTINCT status FROM beads", {}))
    assert [row["status"] for row in beads] == ["closed"]


async def test_an_event_that_is_being_told_while_its_run_is_deleted_goes_with_it(
    rivals: list[Store], ids: IdSource
) -> None:
    one, other = rivals
    await add(one, ids, "free")
    run = (await one.transact(firing.run_by_hand, firing.ByHand("free"), rules=RULES, ctx=context())).run
    locked, go_on = threading.Event(), threading.Event()

    def tell_slowly(tx: Tx) -> None:
        tx.runs.lock(run)
        tx.runs.add_event(NewRunEvent(run, AT, "late", "test"))
        tx.runs.get(run)  # sends what was held back
        locked.set()
        assert go_on.wait(20)

    telling = asyncio.create_task(one.transact(tell_slowly))
    assert await asyncio.to_thread(locked.wait, 20)
    deleting = asyncio.create_task(other.transact(lambda tx: tx.runs.delete([run])))
    await asyncio.sleep(0.1)  # it waits for the run's row by now, or comes after it
    go_on.set()
    await telling
    assert await deleting == 1
    left = await one.read(lambda tx: tx.db.rows("SELECT type FROM run_events WHERE run_id = :run", {"run": run}))
    assert left == []


WAITS_FOR_ME = "SELECT 1 AS found FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
FREE = "SELECT id FROM runs WHERE id = :run FOR UPDATE SKIP LOCKED"
WORKER = review.Worker("own_1", "here")


def refused(tx: Tx, item: Item, ids: IdSource) -> None:
    ending = review.Ending(RunState.SKIPPED, "login", Stage.EXECUTION)
    assert review.refuse(tx, item, ending, WORKER, ctx=acting("tester", AT, ids)) is not None


def not_enriched(tx: Tx, item: Item, ids: IdSource) -> None:
    tx.db.execute("DELETE FROM trigger_events", {})
    ended = enriching.enrich(tx, item, WORKER, ctx=acting("tester", AT, ids))
    assert ended is not None
    assert ended.reason == "missing_context"


def without_target(tx: Tx, item: Item, ids: IdSource) -> None:
    failed = Target(How.FAILED, None, "nobody could choose")
    assert executing.begin(tx, item, failed, WORKER, ctx=acting("tester", AT, ids)) is None


@pytest.mark.parametrize("way", [refused, not_enriched, without_target])
async def test_a_run_that_cannot_start_is_locked_after_its_automation_as_by_a_cancel(
    rivals: list[Store], ids: IdSource, way: Callable[[Tx, Item, IdSource], None]
) -> None:
    """Whoever holds the automation and then wants the run finds it free: there is no deadlock between the two."""
    one, two = rivals
    await add(one, ids, "a", agent={"prompt": "Light the lamps."})
    fired = await one.transact(firing.run_by_hand, firing.ByHand("a"), rules=RULES, ctx=acting("tester", AT, ids))
    (item,) = await one.transact(outbox.claim_due, WORKER.owner, AT, limit=1, run=fired.run)
    held = threading.Event()

    def cancel_slowly(tx: Tx) -> list[str]:
        automation = tx.runs.automation_of(fired.run)
        assert automation is not None
        tx.automations.lock(automation)
        held.set()
        end = time.monotonic() + 60
        while tx.db.row(WAITS_FOR_ME, {}) is None:
            assert time.monotonic() < end, "the other one does not wait for the automation"
        return [row["id"] for row in tx.db.rows(FREE, {"run": fired.run})]

    canceling = asyncio.create_task(one.transact(cancel_slowly))
    assert await asyncio.to_thread(held.wait, 60)
    ending = asyncio.create_task(two.transact(way, item, ids))
    assert await canceling == [fired.run]
    await ending
    (row,) = await all_runs(one)
    assert row.ended
