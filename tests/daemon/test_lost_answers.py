"""A database that takes a transaction and breaks the connection before its answer: the work comes back at once."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from loops_city import Loops

from lamplighter.daemon.pipeline.dispatcher import Dispatcher
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.domain.runs.model import RunState
from lamplighter.services import outbox, owners
from lamplighter.services.automations.firing import ByHand, run_by_hand
from lamplighter.services.runs import claiming, executing
from lamplighter.store.errors import CommitUnknown, StoreUnavailable
from lamplighter.store.tx import Store, Tx


class Breaking:
    """The city's store, whose connection breaks once at each named transaction: after its commit, or before it."""

    def __init__(
        self, store: Store, *, after: tuple[Callable[..., Any], ...] = (), before: tuple[Any, ...] = ()
    ) -> None:
        self._store = store
        self.after, self.before = list(after), list(before)

    async def transact(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if fn in self.before:
            self.before.remove(fn)
            raise StoreUnavailable("The database is away.")
        value = await self._store.transact(fn, *args, **kwargs)
        if fn in self.after:
            self.after.remove(fn)
            raise CommitUnknown("here")
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def breaking(loops: Loops, **at: Any) -> Breaking:
    store = Breaking(loops.store, **at)
    parts = loops.parts
    parts.dispatcher.store = parts.dispatcher.handlers.store = parts.worker.store = store
    parts.dispatcher.handlers.agents.store = store
    return store


async def items(loops: Loops) -> list[Item]:
    def all_of_them(tx: Tx) -> list[Item]:
        found = tx.db.rows("SELECT id FROM outbox ORDER BY id", {})
        return [item for row in found if (item := tx.outbox.lock(row["id"])) is not None]

    return await loops.store.transact(all_of_them)


async def to_the_end(loops: Loops, run: str) -> None:
    """Ticks as its loop has them, which goes on after a database that was away."""
    dispatcher = loops.parts.dispatcher

    async def over() -> bool:
        await ticked(dispatcher)
        return (await loops.get(run)).ended

    await loops.until(over)
    await dispatcher.handling.all_done()
    await loops.parts.worker.tasks.all_done()


async def ticked(dispatcher: Dispatcher) -> None:
    try:
        await dispatcher.tick()
    except StoreUnavailable:
        return


@pytest.mark.parametrize("fn", [claiming.take_due, executing.begin])
async def test_an_agent_run_goes_on_at_once_and_costs_no_attempt(loops: Loops, fn: Callable[..., Any]) -> None:
    await loops.add("agent", agent={"prompt": "echo once >> ran", "preset": "shell"})
    store = breaking(loops, after=(fn,))
    run = await loops.fire("agent")
    await to_the_end(loops, run)
    assert store.after == [], "the connection broke where it was meant to"
    assert (await loops.get(run)).reason == "no_completion"
    assert (loops.root / "ran").read_text() == "once\n"
    assert {item.attempts for item in await items(loops)} <= {0, 1}, "done counts one"


async def test_a_command_whose_start_was_taken_is_carried_out_once(loops: Loops) -> None:
    await loops.add("command", exec="echo once >> ran")
    store = breaking(loops, after=(claiming.take_due,))
    run = await loops.fire("command")
    await to_the_end(loops, run)
    assert store.after == []
    assert (await loops.get(run)).state is RunState.SUCCEEDED
    assert (loops.root / "ran").read_text() == "once\n"


async def test_a_run_fired_by_hand_whose_answer_was_lost_is_carried_out_once(loops: Loops) -> None:
    await loops.add("command", exec="echo once >> ran")
    breaking(loops, after=(run_by_hand,))
    with pytest.raises(StoreUnavailable):
        await loops.parts.worker.fire(ByHand("command", {}), ctx=loops.context)
    [run] = [row.id for row in await loops.store.read(lambda tx: tx.runs.page(limit=5))]
    assert (await loops.get(run)).lease.owner == "own_first"
    await to_the_end(loops, run)
    assert (loops.root / "ran").read_text() == "once\n"


async def test_an_item_that_failed_for_want_of_the_database_comes_back_without_an_attempt(loops: Loops) -> None:
    await loops.add("agent", agent={"prompt": "true", "preset": "shell"})
    store = breaking(loops, before=(executing.begin,))
    await loops.fire("agent")
    await loops.parts.dispatcher.tick()
    await loops.parts.dispatcher.handling.all_done()
    assert store.before == []
    await loops.parts.worker.give_back(())
    item = next(one for one in await items(loops) if one.kind == ItemKind.ENQUEUE_EXECUTE)
    assert (item.attempts, item.recoveries, item.claimed_by) == (0, 1, None)
    assert item.due_at <= loops.clock.now() + timedelta(seconds=1)


async def test_work_that_is_under_way_is_not_given_back(loops: Loops) -> None:
    await loops.add("long", exec="echo begun; exec sleep 4711")
    run = await loops.fire("long")

    async def begun() -> bool:
        await loops.parts.dispatcher.tick()
        return "begun" in await loops.runner.tail(run)

    await loops.until(begun)
    lease = (await loops.get(run)).lease
    loops.parts.worker.doubt()
    await loops.parts.dispatcher.tick()
    assert (await loops.get(run)).lease == lease
    await loops.parts.worker.stop()


async def test_what_is_claimed_after_the_doubt_is_left_alone(loops: Loops) -> None:
    """Its answer may be on its way."""
    await loops.add("agent", agent={"prompt": "true", "preset": "shell"})
    await loops.fire("agent")
    loops.parts.worker.doubt()
    later = loops.clock.now() + timedelta(seconds=5)
    [item] = await loops.store.transact(outbox.claim_due, "own_first", later, limit=5)
    await loops.parts.worker.give_back(())
    assert (await items(loops))[0].claims == item.claims
    assert (await items(loops))[0].claimed_by == "own_first"


async def test_another_item_of_the_run_that_is_being_handled_keeps_nothing_back(loops: Loops) -> None:
    await loops.add("agent", agent={"prompt": "true", "preset": "shell"})
    breaking(loops, after=(executing.begin,))
    run = await loops.fire("agent")
    dispatcher = loops.parts.dispatcher

    async def doubted() -> bool:
        await ticked(dispatcher)
        await dispatcher.handling.all_done()
        return loops.parts.worker._doubted_at is not None

    await loops.until(doubted)
    beside = new_item("out_beside", ItemKind.WRITE_ARTIFACT, {"run": run, "artifact": "enrichment"}, loops.clock.now())
    assert await loops.parts.worker.give_back((beside,)) == 1


async def test_items_that_were_lost_and_claimed_again_are_let_go_of_by_both_handlers(
    loops: Loops, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others took this process for dead, and gave its items back while they were being handled here."""
    broken: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: broken.append(told))
    dispatcher, go_on, handled = loops.parts.dispatcher, asyncio.Event(), []
    nothing = owners.HeldWork(frozenset(), frozenset())

    async def handle(item: Item) -> bool:
        handled.append(item.id)
        await go_on.wait()
        return True

    monkeypatch.setattr(dispatcher.handlers, "handle", handle)
    await loops.add("agent", agent={"prompt": "true", "preset": "shell"})
    await loops.fire("agent")
    assert await dispatcher.tick() == 2
    await asyncio.sleep(0)
    await loops.store.transact(
        owners.give_back, "own_first", nothing, before=loops.clock.now() + timedelta(seconds=1), ctx=loops.context
    )

    async def claimed_again() -> bool:
        dispatcher._added = True
        return await dispatcher.tick() == 2

    await loops.until(claimed_again)
    go_on.set()
    await dispatcher.handling.all_done()
    await asyncio.sleep(0)  # the callbacks of the tasks
    assert sorted(handled[:2]) == sorted(handled[2:])
    assert (broken, dispatcher._items) == ([], {})
