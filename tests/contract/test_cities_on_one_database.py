"""Two cities through the same threads and connections, under load: no row, number or wake-up of one is the other's."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.delivery.outbox import ItemState
from lamplighter.domain.events import EventFilter
from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.ids import At, IdSource
from lamplighter.kit.limits import TimeLimit
from lamplighter.services import outbox
from lamplighter.services.automations import editing, firing
from lamplighter.services.beads import changes as beads
from lamplighter.services.context import Context, acting
from lamplighter.services.event_tail import EventTail
from lamplighter.services.rules import Rules
from lamplighter.services.runs import claiming, review
from lamplighter.store.engine import Database, Wakes
from lamplighter.store.tx import DirectStore, Store, Tx
from lamplighter.store.url import Place, PostgresUrl, open_database, open_direct, open_store

RULES = Rules(ZoneInfo("UTC"))
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROUNDS = 6
AT_ONCE = 20
WITHIN = 120.0
MANY = 200


class Heard(Wakes):
    """Wake-ups that are also written down."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: set[str] = set()

    def publish(self, topics: Iterable[str]) -> None:
        self.topics |= set(topics)
        super().publish(topics)


@dataclass
class Town:
    """One city under load. Both cities make the same ids, in all else each row says whose it is."""

    name: str
    store: Store
    wakes: Heard
    ids: IdSource = field(init=False)

    def __post_init__(self) -> None:
        self.ids = IdSource(At(AT), random.Random(5267).randbytes)

    @property
    def context(self) -> Context:
        return acting(self.name, AT, self.ids)

    async def found(self) -> None:
        await self.store.transact(lambda tx: tx.cities.ensure(self.name, AT))
        body = {"name": f"work-{self.name}", "exec": "true", "gate": "manual", "overlap": "allow"}
        await self.store.transact(editing.create, body, rules=RULES, ctx=self.context)

    async def load(self) -> None:
        for number in range(ROUNDS):
            fired = await asyncio.gather(*(self._fire() for _ in range(AT_ONCE)), self._other_work(number))
            await self._run_all({one.run for one in fired if one is not None})

    async def _fire(self) -> firing.Fired:
        wanted = firing.ByHand(f"work-{self.name}", payload={"of": self.name})
        return await self.store.transact(firing.run_by_hand, wanted, rules=RULES, ctx=self.context)

    async def _other_work(self, number: int) -> None:
        made = [self._bead(f"{self.name} {number}.{one}") for one in range(AT_ONCE)]
        await asyncio.gather(*made, *(self.say() for _ in range(AT_ONCE)))
        if number % 2:  # not always: a group in which one function fails is done again with every write sent at once
            await asyncio.gather(*(self.say() for _ in range(AT_ONCE)), self._fail())

    async def _bead(self, title: str) -> None:
        bead = await self.store.transact(beads.create, NewBead(title), prefix="gc", ctx=self.context)
        await self.store.transact(beads.close, bead.id, ctx=self.context)

    async def say(self) -> None:
        def say(tx: Tx) -> None:
            tx.events.append(self.context.event("test.said", subject=self.name))
            tx.wake(f"only-{self.name}")

        await self.store.transact(say)

    async def _fail(self) -> None:
        """A function that fails takes its wake-ups with it, and has the group that it is in done again."""

        def fail(tx: Tx) -> None:
            tx.events.append(self.context.event("test.failed", subject=self.name))
            tx.wake("never")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await self.store.transact(fail)

    async def _run_all(self, fired: set[str]) -> None:
        me = review.Worker(f"own_{self.name}", "here")
        started: list[Any] = []
        while len(started) < len(fired):
            taken = await asyncio.gather(
                *(self.store.transact(claiming.take_due, me, limit=AT_ONCE // 4, ctx=self.context) for _ in range(4))
            )
            started += [one for some in taken for one in some.started]
        assert {one.row.id for one in started} == fired
        assert await self.store.transact(outbox.claim_due, me.owner, AT, limit=AT_ONCE) == []
        by = By(Mover.WORKER, self.name, 1)
        ending = review.Ending(RunState.SUCCEEDED, output_tail=self.name)
        await asyncio.gather(*(self.store.transact(review.end, run, ending, by, ctx=self.context) for run in fired))

    async def events(self) -> list[Any]:
        """As a follower sees them, with all that were appended."""
        count = await self.store.read(_appended)
        seen: list[Any] = []
        stream = EventTail(self.store, self.wakes, SystemClock()).follow(EventFilter())
        async with TimeLimit(WITHIN):
            async for event in stream:
                seen.append(event)
                if len(seen) == count:
                    break
        await stream.aclose()
        return seen


def _appended(tx: Tx) -> int:
    row = tx.db.row("SELECT count(*) AS n FROM events WHERE city_id = :city", {"city": tx.city})
    return 0 if row is None else row["n"]


@pytest.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    opened = open_database(place)
    yield opened
    await opened.close()


@pytest.fixture
async def towns(place: Place, database: Database) -> tuple[Town, Town]:
    made = []
    for name in ("ashford", "brookham"):
        wakes = Heard()
        made.append(Town(name, open_store(place, f"cty_{name}", wakes, database=database), wakes))
        await made[-1].found()
    return made[0], made[1]


async def test_two_cities_under_load_have_nothing_of_each_other(towns: tuple[Town, Town], place: Place) -> None:
    one, other = towns
    await asyncio.gather(one.load(), other.load())
    rows = {town.name: await town.store.read(_rows_of, postgres=isinstance(place, PostgresUrl)) for town in towns}
    assert _named(rows[one.name], other.name) == []
    assert _named(rows[other.name], one.name) == []
    counts = {name: Counter(table for table, _ in found) for name, found in rows.items()}
    assert counts[one.name] == counts[other.name]
    assert counts[one.name]["runs"] == ROUNDS * AT_ONCE
    for town in towns:
        states = await town.store.read(lambda tx: {row.state for row in tx.runs.page(limit=1000)})
        assert states == {RunState.SUCCEEDED}
        items = [text for table, text in rows[town.name] if table == "outbox"]
        assert all(ItemState.DONE.value in text for text in items)


async def test_each_city_follows_its_own_events_each_once_and_in_order(towns: tuple[Town, Town]) -> None:
    one, other = towns
    await asyncio.gather(one.load(), other.load())
    for town in towns:
        seen = await town.events()
        numbers = [event.seq for event in seen]
        assert numbers == sorted(set(numbers))
        assert sum(event.type == "test.said" for event in seen) == (ROUNDS + ROUNDS // 2) * AT_ONCE
        assert {event.actor for event in seen} == {town.name}
        assert not any(event.type == "test.failed" for event in seen)


async def test_writes_of_two_cities_that_are_sent_together_are_each_its_own_citys(towns: tuple[Town, Town]) -> None:
    await asyncio.gather(*(town.say() for _ in range(MANY) for town in towns))
    for town in towns:
        seen = await town.events()
        assert [event.actor for event in seen if event.type == "test.said"] == [town.name] * MANY


async def test_a_wake_up_is_that_of_its_city_only(towns: tuple[Town, Town]) -> None:
    one, other = towns
    heard = one.wakes.subscribe(f"only-{one.name}"), other.wakes.subscribe(f"only-{other.name}")
    await asyncio.gather(one.load(), other.load())
    async with TimeLimit(WITHIN):
        for event in heard:
            await event.wait()
        await asyncio.gather(one.events(), other.events())  # the events' wake-ups come last
    assert f"only-{other.name}" not in one.wakes.topics
    assert f"only-{one.name}" not in other.wakes.topics
    assert "never" not in one.wakes.topics | other.wakes.topics


async def test_a_store_that_is_closed_leaves_the_others_on_its_database_at_work(towns: tuple[Town, Town]) -> None:
    one, other = towns
    await one.store.close()
    await other.load()
    assert len(await other.store.read(lambda tx: tx.runs.page(limit=1000))) == ROUNDS * AT_ONCE
    one.wakes.topics.clear()
    await one.store.transact(lambda tx: tx.wake("late"))  # its database is open, but nobody is told any more
    await other.store.transact(lambda tx: tx.wake("late"))
    heard = other.wakes.subscribe("late")
    async with TimeLimit(WITHIN):
        while "late" not in other.wakes.topics:
            await asyncio.wait_for(heard.wait(), WITHIN)
    assert one.wakes.topics == set()


def test_two_cities_share_the_connection_of_a_command(place: Place) -> None:
    one = open_direct(place, "cty_ashford")
    other = open_direct(place, "cty_brookham", beside=one)
    try:
        for store, name in ((one, "ashford"), (other, "brookham"), (one, "ashford")):
            store.transact(lambda tx, name=name: tx.cities.ensure(name, AT))
        assert _name(one) == "ashford"
        assert _name(other) == "brookham"
        other.close()
        assert _name(one) == "ashford"
    finally:
        one.close()


def _name(store: DirectStore) -> str:
    row = store.read(lambda tx: tx.cities.find())
    assert row is not None
    return row.name


def _rows_of(tx: Tx, *, postgres: bool) -> list[tuple[str, str]]:
    """Every row of the city in every table, as text, but for the column that says whose row it is."""
    tables = (
        "SELECT table_name AS name FROM information_schema.columns WHERE column_name = 'city_id' "
        "AND table_schema = 'public'"
        if postgres
        else "SELECT m.name AS name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table' AND c.name = 'city_id'"
    )
    found: list[tuple[str, str]] = []
    for table in sorted(row["name"] for row in tx.db.rows(tables, {})):
        rows = tx.db.rows(f"SELECT * FROM {table} WHERE city_id = :city", {"city": tx.city})
        found += [(table, repr({**dict(row), "city_id": ""})) for row in rows]
    return found


def _named(rows: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return [row for row in rows if name in row[1]]
