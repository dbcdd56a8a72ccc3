"""Calls that wait together are done together: each has its own answer, as if it had been alone."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from lamplighter.domain.beads.model import BeadChange, BeadFilter, NewBead
from lamplighter.domain.events import NewEvent
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import By, Mover, Run, RunState
from lamplighter.kit.ids import At, IdSource
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import outbox
from lamplighter.services.automations import editing, firing
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import acting
from lamplighter.services.rules import Rules
from lamplighter.services.runs import claiming, review
from lamplighter.store.engine.deferred import Write
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreReadOnly
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.runs import StaleRun
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, PostgresUrl, open_direct, open_store
from lamplighter.testing.contracts.store import AT, CITY

RULES = Rules(ZoneInfo("UTC"))
CONTEXT = acting("tester", AT)
ME = review.Worker("own_1", "here")
MANY = 30


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    opened = open_store(place, CITY, Wakes())
    await opened.transact(lambda tx: tx.cities.ensure("here", AT))
    yield opened
    await opened.close()


async def add(store: Store, name: str, **keys: Any) -> None:
    body = {"name": name, "exec": "true", "gate": "manual"} | keys
    await store.transact(editing.create, body, rules=RULES, ctx=CONTEXT)


async def fire(store: Store, name: str, key: str | None = None, ids: IdSource | None = None) -> firing.Fired:
    ctx = acting("tester", AT, ids)
    return await store.transact(firing.run_by_hand, firing.ByHand(name, key=key), rules=RULES, ctx=ctx)


async def end(store: Store, run: str, lease: int, ending: review.Ending | None = None) -> Run:
    by = By(Mover.WORKER, "worker", lease)
    return await store.transact(review.end, run, ending or review.Ending(RunState.SUCCEEDED), by, ctx=CONTEXT)


async def running(store: Store, count: int) -> list[str]:
    fired = await asyncio.gather(*(fire(store, "free") for _ in range(count)))
    taken = await store.transact(claiming.take_due, ME, limit=count, ctx=CONTEXT)
    assert len(taken.started) == count
    return [one.run for one in fired]


def errors_of(answers: list[Any]) -> list[type]:
    return [type(one) for one in answers if isinstance(one, Exception)]


async def test_one_of_many_that_ask_at_once_is_run_and_the_others_are_told(store: Store) -> None:
    await add(store, "single", overlap="skip")
    answers = await asyncio.gather(*(fire(store, "single") for _ in range(MANY)), return_exceptions=True)
    assert errors_of(answers) == [firing.AlreadyRunning] * (MANY - 1)
    assert len(await store.read(lambda tx: tx.runs.page())) == 1


async def test_one_key_asked_for_many_times_at_once_is_one_run(store: Store) -> None:
    await add(store, "free", overlap="allow")
    answers = await asyncio.gather(
        *(fire(store, "free", key="same") for _ in range(MANY)), *(fire(store, "free") for _ in range(MANY)),
        return_exceptions=True,
    )  # fmt: skip
    assert errors_of(answers) == []
    assert len({one.run for one in answers[:MANY] if isinstance(one, firing.Fired)}) == 1
    assert len(await store.read(lambda tx: tx.runs.page(limit=100))) == MANY + 1


async def test_a_whole_run_made_in_a_batch_is_what_it_is_alone(store: Store) -> None:
    await add(store, "free", overlap="allow")
    made = await running(store, MANY)
    await asyncio.gather(*(end(store, run, 1) for run in made))
    for run in made:
        row = await store.read(review.get, run)
        timeline = await store.read(lambda tx, run=run: tx.runs.events(run))
        assert [(event.from_state, event.to_state) for event in timeline] == [
            (None, "ready"), ("ready", "running"), ("running", "succeeded"),
        ]  # fmt: skip
        bead = await store.read(lambda tx, bead=row.bead: tx.beads.get(bead))
        assert bead is not None
        assert (bead.status, bead.labels) == ("closed", ("automation-run:free", "exec"))
        said = await store.read(lambda tx, event=row.trigger_event: tx.trigger_events.get(event))
        assert said is not None
        assert said.status == "completed"
    assert await store.read(outbox.next_due_at) is None


async def test_tracking_beads_are_found_by_the_labels_that_their_runs_give_them(store: Store) -> None:
    await add(store, "free", overlap="allow")
    good, bad, open_one = await running(store, 3)
    await end(store, good, 1)
    await end(store, bad, 1, review.Ending(RunState.FAILED, "exit_1"))
    made = NewBead("a run in a rig", type="run", labels=("exec",))
    own = (await store.transact(beads.create, made, prefix="he", ctx=CONTEXT.inside(good))).id
    other = await store.transact(beads.create, NewBead("x", type="run"), prefix="he", ctx=CONTEXT.inside(bad))
    bead_of = {run: (await store.read(review.get, run)).bead for run in (good, bad, open_one)}

    async def labelled(label: str) -> set[str]:
        found = await store.read(lambda tx: tx.beads.matching(BeadFilter(label=label), limit=10))
        assert all(label in bead.labels for bead in found)
        return {bead.id for bead in found}

    assert await labelled("automation-run:free") == set(bead_of.values())
    assert await labelled("automation-run:other") == set()
    assert await labelled("exec") == {*bead_of.values(), own}
    assert await labelled("exec-failed") == {bead_of[bad]}
    assert await labelled("agent") == set()
    assert other.labels == ()  # within a run, but not the one that tracks it
    tracked = bead_of[bad] or ""
    with pytest.raises(beads.LabelGiven, match="has the label `exec-failed` from the run it tracks"):
        await store.transact(beads.change, tracked, BeadChange(remove_labels=("x", "exec-failed")), ctx=CONTEXT)
    await store.transact(beads.change, tracked, BeadChange(type="task", add_labels=("x", "exec")), ctx=CONTEXT)
    changed = await store.transact(beads.change, tracked, BeadChange(remove_labels=("x",)), ctx=CONTEXT)
    assert changed.labels == ("automation-run:free", "exec", "exec-failed")
    assert await labelled("exec-failed") == {tracked}


async def test_a_page_of_a_label_has_the_newest_beads(store: Store) -> None:
    await add(store, "free", overlap="allow")
    made = await running(store, 6)
    for number, run in enumerate(made):
        await end(store, run, 1, review.Ending(RunState.FAILED if number % 2 else RunState.SUCCEEDED))

    async def page(**wanted: Any) -> list[str | None]:
        found = await store.read(lambda tx: tx.beads.matching(BeadFilter(**wanted), limit=2))
        return [bead.run for bead in found]

    in_order = [bead.run for bead in await store.read(lambda tx: tx.beads.matching(BeadFilter(), limit=10))]
    failed = [run for run in in_order if run in made[1::2]]
    for label, expected in {"automation-run:free": in_order, "exec": in_order, "exec-failed": failed}.items():
        assert await page(label=label, type="run") == expected[:2]
        assert set(await page(label=label)) <= set(expected)
        assert len(await page(label=label)) == 2
        assert await page(label=label, type="task") == []


async def test_a_transaction_that_fails_in_the_middle_leaves_its_connection_usable(place: Place) -> None:
    """The sixth time a statement is sent, a driver may take it for known to the server; not so if it never came."""
    direct = open_direct(place, CITY)

    def three_kinds(tx: Tx, event: str) -> None:
        row = TriggerEvent(event, "aut", "one", "t", "manual", "fired", "", AT, AT)
        tx.trigger_events.insert(row)
        tx.events.append(NewEvent("a.b", AT, "test"))
        tx.beads.close("he-none", AT)

    direct.read(lambda tx: tx.cities.find())
    for event in ("1", "2", "3", "4", "5"):
        direct.transact(three_kinds, event)
    with pytest.raises((psycopg.IntegrityError, sqlite3.IntegrityError)):
        direct.transact(three_kinds, "5")
    for event in ("6", "7", "8"):
        direct.transact(three_kinds, event)
    assert len(direct.read(lambda tx: tx.trigger_events.history("one"))) == 8
    direct.close()


async def test_an_earlier_program_may_add_to_a_timeline_too(store: Store) -> None:
    """It counts a run's events and goes on by one."""
    await add(store, "free", overlap="allow")
    run = (await fire(store, "free")).run

    def by_the_earlier_one(tx: Tx) -> None:
        tx.db.execute(
            """INSERT INTO run_events (city_id, run_id, number, at, type, actor)
            SELECT :city, :run, max(number) + 1, 0, 'earlier', 'x' FROM run_events
            WHERE city_id = :city AND run_id = :run""",
            {"city": CITY, "run": run},
        )

    for _ in range(3):
        await store.transact(by_the_earlier_one)
        await store.transact(lambda tx: tx.runs.add_event(NewRunEvent(run, AT, "later", "y")))
    told = [event.type for event in await store.read(lambda tx: tx.runs.events(run))]
    assert told == ["run_created", *["earlier", "later"] * 3]


async def test_what_is_refused_in_a_batch_touches_none_of_the_others(store: Store) -> None:
    await add(store, "free", overlap="allow")
    made = await running(store, MANY)
    wrong_lease, *good = made
    answers = await asyncio.gather(
        end(store, wrong_lease, 7), end(store, "run_of_nobody", 1),
        *(end(store, run, 1) for run in (*good, good[0])),
        return_exceptions=True,
    )  # fmt: skip
    assert errors_of(answers)[:2] == [LeaseLost, RunUnknown]
    assert len(errors_of(answers)) == 3
    states = await store.read(lambda tx: tx.runs.states(made))
    assert [run for run, (state, *_) in states.items() if state is RunState.RUNNING] == [wrong_lease]


async def test_what_cannot_be_written_fails_alone(store: Store, place: Place) -> None:
    await add(store, "free", overlap="allow")
    bad, *good = await running(store, MANY)
    nul = review.Ending(RunState.FAILED, output_tail="a\0b")
    answers = await asyncio.gather(
        end(store, bad, 1, nul), *(end(store, run, 1) for run in good), return_exceptions=True
    )
    refuses_nul = isinstance(place, PostgresUrl)
    assert len(errors_of(answers)) == (1 if refuses_nul else 0)
    states = await store.read(lambda tx: tx.runs.states(good))
    assert {state for state, *_ in states.values()} == {RunState.SUCCEEDED}


async def test_failures_that_end_together_are_all_counted(store: Store) -> None:
    await add(store, "free", overlap="allow", auto_disable_after=3)
    made = await running(store, 5)
    await store.transact(lambda tx: tx.db.execute("UPDATE runs SET trigger_kind = 'cron'", {}))
    await asyncio.gather(*(end(store, run, 1, review.Ending(RunState.FAILED, "exit_1")) for run in made))
    row = await store.read(lambda tx: tx.automations.named("free"))
    assert row is not None
    assert (row.enabled, row.failures) == (False, 5)
    told = "SELECT count(*) AS count FROM events WHERE type = 'automation.disabled'"  # some have no number yet
    counted = await store.read(lambda tx: tx.db.row(told, {}))
    assert counted is not None
    assert counted["count"] == 1


async def test_a_stale_swap_is_told_as_such_although_it_was_held_back(store: Store) -> None:
    await add(store, "free", overlap="allow")
    [run] = await running(store, 1)

    def stale(tx: Tx) -> None:
        row = tx.runs.get(run)
        assert row is not None
        tx.runs.swap(replace(row, state=RunState.READY), row)

    with pytest.raises(StaleRun):
        await store.transact(stale)


async def test_two_writes_of_one_row_in_one_transaction_both_count(store: Store) -> None:
    await add(store, "free", overlap="allow")
    [run] = await running(store, 1)

    def twice(tx: Tx) -> None:
        row = tx.runs.get(run)
        assert row is not None
        renamed = replace(row, summary="first")
        tx.runs.swap(row, renamed)
        tx.runs.swap(renamed, replace(renamed, summary="second"))

    await store.transact(twice)
    assert (await store.read(review.get, run)).summary == "second"


async def test_what_was_held_back_is_seen_by_the_next_read(store: Store) -> None:
    def write_and_read(tx: Tx) -> bool:
        tx.beads.track("he-tracked1", "one", sender="test", run="run_x", now=AT)
        return tx.beads.get("he-tracked1") is not None

    assert await store.transact(write_and_read)


async def test_a_read_refuses_what_was_held_back(store: Store) -> None:
    with pytest.raises(StoreReadOnly):
        await store.read(lambda tx: tx.beads.track("he-tracked2", "x", sender="test", run="run_x", now=AT))


async def test_a_taken_id_of_a_tracking_bead_is_noticed(store: Store) -> None:
    """Chance gives the same word twice: the second firing looks for another one, and nothing of it is lost."""
    await add(store, "free", overlap="allow")

    class Stuck(IdSource):
        words = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"])

        def short(self, length: int) -> str:
            return next(self.words)[:length]

    stuck = Stuck(At(AT))
    fired = [await fire(store, "free", ids=stuck) for _ in range(2)]
    beads = {(await store.read(review.get, one.run)).bead for one in fired}
    assert len(beads) == 2


def test_a_write_says_where_its_rows_come_from() -> None:
    with pytest.raises(ValueError, match="each"):
        Write("UPDATE runs SET state = :state")
