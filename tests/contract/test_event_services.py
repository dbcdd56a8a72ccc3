"""Events on both databases: filters, following, retention, and the export to a file."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamplighter.daemon import exporter as exporter_module
from lamplighter.daemon.exporter import Exporter, last_seq
from lamplighter.domain.access import owner
from lamplighter.domain.events import LONGEST_PAYLOAD, Event, EventFilter, NewEvent
from lamplighter.kit.errors import Unavailable, UsageError
from lamplighter.kit.ids import At, IdSource
from lamplighter.services import events
from lamplighter.services.context import Context, acting
from lamplighter.services.event_operations import EMIT, EmitEvent
from lamplighter.services.event_tail import EventTail
from lamplighter.services.operation import judged
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store, Tx
from lamplighter.store.url import Place, open_store
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.contracts.store import AT, CITY, WITHIN, seen

FACTS = [("bead.created", "ann"), ("beads.other", "ben"), ("bead.closed", "ann"), ("run.ended", "ben"), ("bead", "ann")]

ANN = Context(owner("ann"), AT, IdSource(At(AT)))


@pytest.fixture
def wakes() -> Wakes:
    return Wakes()


@pytest.fixture
async def store(place: Place, wakes: Wakes) -> AsyncIterator[Store]:
    opened = open_store(place, CITY, wakes)
    yield opened
    await opened.close()


class Bus:
    """The store with its wake-ups, as the tests below use it."""

    def __init__(self, store: Store, wakes: Wakes) -> None:
        self.store = store
        self.wakes = wakes
        self._appended = 0

    async def append(self, *facts: NewEvent) -> list[Event]:
        """Returns once every event so far has its number; all that are kept."""

        def all_of(tx: Tx) -> None:
            for fact in facts:
                tx.events.append(fact)

        self._appended += len(facts)
        await self.store.transact(all_of)
        return await seen(self.store, self.wakes, self._appended)


@pytest.fixture
def bus(store: Store, wakes: Wakes) -> Bus:
    return Bus(store, wakes)


def said(count: int, *, since: int = 0) -> list[NewEvent]:
    return [
        acting("tester", AT + timedelta(minutes=n)).event("test.said", subject=str(n))
        for n in range(since, since + count)
    ]


async def types(store: Store, wanted: EventFilter) -> list[str]:
    return [event.type for event in await store.read(events.latest, wanted, limit=100)]


async def test_filters_ask_exactly_what_they_say(store: Store, bus: Bus) -> None:
    await bus.append(
        *(acting(who, AT + timedelta(hours=n)).event(what, subject=str(n)) for n, (what, who) in enumerate(FACTS))
    )
    assert await types(store, EventFilter(type="bead.*")) == ["bead.created", "bead.closed"]
    assert await types(store, EventFilter(type="bead.closed")) == ["bead.closed"]
    assert await types(store, EventFilter(type="bead")) == ["bead"]
    assert await types(store, EventFilter(type="nothing.*")) == []
    assert await types(store, EventFilter(actor="ben")) == ["beads.other", "run.ended"]
    assert await types(store, EventFilter(actor="ann", type="bead.*", subject="2")) == ["bead.closed"]
    assert await types(store, EventFilter(since=AT + timedelta(hours=3))) == ["run.ended", "bead"]
    after = (await store.read(events.latest, EventFilter(), limit=2))[0].seq
    assert await types(store, EventFilter(after=after)) == ["bead"]
    assert [event.type for event in await store.read(events.latest, EventFilter(), limit=2)] == ["run.ended", "bead"]


async def test_an_event_comes_back_as_it_went_in(bus: Bus) -> None:
    payload = {"text": "ünïcode \x00 \ud83d", "list": [1, 2.5, None, True], "deep": {"x": {}}}
    fact = NewEvent("test.said", AT, "ann", "subject", "a message: 100% {braces} :colon 'quote'", payload, "run_1")
    event = (await bus.append(fact))[0]
    assert (event.type, event.at, event.actor, event.subject) == (fact.type, fact.at, fact.actor, fact.subject)
    assert (event.message, event.payload, event.run) == (fact.message, payload, "run_1")


async def test_cities_do_not_see_each_others_events(place: Place, bus: Bus) -> None:
    await bus.append(*said(3))
    other = open_store(place, "cty_other", Wakes())
    try:
        assert await other.read(events.head) == 0
        assert await other.read(lambda tx: tx.events.after(0)) == []
    finally:
        await other.close()


async def test_an_event_from_outside_needs_a_type(store: Store) -> None:
    for name in ["", "word", "Upper.case", "a..b", "a.b ", "bead.*", "a." + "b" * 200, "a.b\n"]:
        with pytest.raises(UsageError):
            await store.transact(judged, EMIT, EmitEvent(name), ANN)
    assert await store.read(events.head) == 0


async def test_a_payload_beyond_the_limit_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="at most"):
        await store.transact(judged, EMIT, EmitEvent("a.b", payload="x" * LONGEST_PAYLOAD), ANN)
    await store.transact(judged, EMIT, EmitEvent("a.b", payload="x" * (LONGEST_PAYLOAD - 2)), ANN)


async def test_following_gives_what_was_what_comes_and_nothing_twice(
    store: Store, bus: Bus, wakes: Wakes, fake_clock: FakeClock
) -> None:
    await bus.append(*said(events.PAGE + 20))
    got: list[str | None] = []
    enough = asyncio.Event()

    async def follow() -> None:
        async with aclosing(EventTail(store, wakes, fake_clock).follow(EventFilter())) as stream:
            async for event in stream:
                got.append(event.subject)
                if len(got) == events.PAGE + 60:
                    enough.set()

    following = asyncio.create_task(follow())
    await bus.append(*said(40, since=events.PAGE + 20))  # the clock stands still: only wake-ups can bring these
    async with asyncio.timeout(WITHIN):
        await enough.wait()
    following.cancel()
    await asyncio.wait({following})
    assert got == [str(n) for n in range(events.PAGE + 60)]


async def test_following_with_a_filter_passes_over_the_rest(
    store: Store, bus: Bus, wakes: Wakes, fake_clock: FakeClock
) -> None:
    await bus.append(*said(events.PAGE * 2), acting("tester", AT).event("test.wanted", subject="this"))
    async with (
        asyncio.timeout(WITHIN),
        aclosing(EventTail(store, wakes, fake_clock).follow(EventFilter(type="test.wanted"))) as stream,
    ):
        assert (await anext(stream)).subject == "this"


async def test_retention_goes_by_age_and_spares_what_a_cursor_has_still_to_read(store: Store, bus: Bus) -> None:
    await bus.append(*said(50))
    numbers = [event.seq for event in await store.read(lambda tx: tx.events.after(0))]
    before = AT + timedelta(minutes=30)
    assert await store.transact(events.prune, before=before, spared_after=numbers[9]) == 10
    assert await store.transact(events.prune, before=before, spared_after=numbers[-1]) == 20
    assert await store.transact(events.prune, before=before, spared_after=numbers[-1]) == 0
    assert [event.seq for event in await store.read(lambda tx: tx.events.after(0))] == numbers[30:]


async def test_a_number_is_never_used_again_after_pruning(store: Store, bus: Bus) -> None:
    await bus.append(*said(5))
    await seen(store, bus.wakes, 5)  # each has its number
    head = await store.read(events.head)
    await store.transact(events.prune, before=AT + timedelta(days=1), spared_after=head)
    await store.transact(lambda tx: tx.events.append(said(1)[0]))
    old, new = await seen(store, bus.wakes, 2)  # the newest of the old ones stays
    assert old.seq == head
    assert new.seq > head  # on PostgreSQL the numbers in between may belong to another city of the database


class TestExport:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "events.jsonl"

    async def test_every_event_is_written_once_over_rotation_and_restart(
        self, store: Store, bus: Bus, path: Path
    ) -> None:
        for turn in range(8):
            await bus.append(*said(30, since=turn * 30))
            await Exporter(store, path, largest=4000, kept=50).tick()
        assert [line["subject"] for line in exported(path)] == [str(n) for n in range(240)]
        assert len(list(path.parent.glob("events.jsonl.*"))) > 3

    async def test_only_so_many_files_are_kept(self, store: Store, bus: Bus, path: Path) -> None:
        for turn in range(6):
            await bus.append(*said(5, since=turn * 5))
            await Exporter(store, path, largest=100, kept=2).tick()
        assert sorted(file.name for file in path.parent.glob("events*")) == [
            "events.jsonl", "events.jsonl.1", "events.jsonl.2",
        ]  # fmt: skip

    async def test_a_crash_between_rotation_and_writing_loses_nothing(self, store: Store, bus: Bus, path: Path) -> None:
        await bus.append(*said(10))
        await Exporter(store, path).tick()
        exporter_module.rotate(path, kept=5)
        await bus.append(*said(10, since=10))
        await Exporter(store, path).tick()
        assert [line["subject"] for line in exported(path)] == [str(n) for n in range(20)]

    @pytest.mark.parametrize("torn", [b'{"seq": 99, "ty', b"\x00" * 5000, b"{" * 100_000])
    async def test_a_torn_last_line_is_written_anew(self, store: Store, bus: Bus, path: Path, torn: bytes) -> None:
        await bus.append(*said(10))
        await Exporter(store, path).tick()
        whole = path.read_bytes()
        path.write_bytes(whole + torn)
        assert last_seq(path) == exported(path, whole)[-1]["seq"]
        await bus.append(*said(10, since=10))
        await Exporter(store, path).tick()
        assert [line["subject"] for line in exported(path)] == [str(n) for n in range(20)]

    async def test_a_line_somebody_else_wrote_makes_nothing_twice(self, store: Store, bus: Bus, path: Path) -> None:
        await bus.append(*said(10))
        await Exporter(store, path).tick()
        with path.open("a", encoding="utf-8") as file:
            file.write("not ours\n")
        await bus.append(*said(10, since=10))
        await Exporter(store, path).tick()
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line != "not ours"]
        assert [json.loads(line)["subject"] for line in lines] == [str(n) for n in range(20)]

    async def test_a_file_that_cannot_be_written_is_told_and_caught_up_with_later(
        self, store: Store, bus: Bus, path: Path
    ) -> None:
        export = Exporter(store, path)
        await bus.append(*said(10))
        await export.tick()
        path.rename(path.with_name("aside"))
        path.mkdir()
        await bus.append(*said(10, since=10))
        with pytest.raises(Unavailable, match=str(path)):
            await export.tick()
        assert export.cursor is None  # so that retention spares everything
        path.rmdir()
        path.with_name("aside").rename(path)
        await export.tick()
        assert [line["subject"] for line in exported(path)] == [str(n) for n in range(20)]

    async def test_a_line_has_the_shape_of_an_event(self, store: Store, bus: Bus, path: Path) -> None:
        await bus.append(*said(1))
        await Exporter(store, path).tick()
        assert list(exported(path)[0]) == ["seq", "type", "at", "actor", "subject", "message", "payload", "run"]
        assert path.stat().st_mode & 0o777 == 0o600


def exported(path: Path, content: bytes | None = None) -> list[dict[str, Any]]:
    """Every line over all files, oldest first."""
    if content is not None:
        return [json.loads(line) for line in content.splitlines()]
    older = sorted(path.parent.glob(path.name + ".*"), key=lambda file: -int(file.suffix[1:]))
    return [json.loads(line) for file in [*older, path] for line in file.read_bytes().splitlines()]
