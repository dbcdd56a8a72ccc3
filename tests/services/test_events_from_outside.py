"""Events that people, programs and runs emit: what is refused, on each database."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from automation_city import CITY, City

from lamplighter.domain import access
from lamplighter.domain.access import Actor, Forbidden, Role, RunOver, Verb, of_run, owner
from lamplighter.domain.events import LONGEST_PAYLOAD, TOPIC, Event, ProductFamily
from lamplighter.domain.runs.model import RunState
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.errors import UsageError
from lamplighter.kit.limits import TimeLimit
from lamplighter.services.context import Context
from lamplighter.services.event_operations import EMIT, EmitEvent, ListEvents, TailEvents, list_events, tail_events
from lamplighter.services.event_tail import EventTail
from lamplighter.services.host import Host
from lamplighter.services.operation import judged
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Tx
from lamplighter.store.url import PostgresUrl, open_store


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent={"prompt": "Go."})
    return str(city.run_now("sweep").run)


def emit(city: City, caller: Actor, event_type: str = "deploy.finished") -> None:
    city.run(judged, EMIT, EmitEvent(event_type), as_asked_by(city, caller))


def as_asked_by(city: City, caller: Actor) -> Context:
    return Context(caller, city.clock.now(), city.ids)


def test_nobody_emits_what_only_the_product_tells(city: City, run: str) -> None:
    for caller in (owner("ada"), owner("ada", run), of_run(run)):
        with pytest.raises(ProductFamily):
            emit(city, caller, "run.forged")
    assert city.events("run.forged") == []


def test_a_run_s_token_emits_until_its_run_has_ended(city: City, run: str) -> None:
    emit(city, of_run(run))
    end(city, run)
    with pytest.raises(RunOver, match="has ended as canceled"):
        emit(city, of_run(run))
    emit(city, owner("ada", run))  # a person, or a program of the city's user, is no token
    assert [event.run for event in city.events("deploy.finished")] == [run, run]


def test_the_token_of_a_run_that_is_gone_emits_nothing(city: City) -> None:
    with pytest.raises(RunOver, match="no run"):
        emit(city, of_run("run_" + "0" * 26))


def test_whoever_may_not_emit_is_refused_by_the_operation_itself(city: City, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(access.RIGHTS, Role.MEMBER, frozenset({Verb.READ}))
    with pytest.raises(Forbidden):
        emit(city, Actor("reader", Role.MEMBER))


def test_a_run_cannot_end_between_the_judgement_and_the_event(city: City, run: str) -> None:
    def emit_and_look(tx: Tx) -> str | None:
        judged(tx, EMIT, EmitEvent("deploy.finished"), as_asked_by(city, of_run(run)))
        return locked_by_somebody(city, run)

    if not isinstance(city.place, PostgresUrl):
        return  # there a transaction that writes is alone from its beginning
    assert city.run(emit_and_look) == "LockNotAvailable"


@pytest.mark.parametrize(("payload", "told"), [("x" * LONGEST_PAYLOAD, "at most"), ({"n": float("nan")}, "not JSON")])
def test_a_payload_that_cannot_be_kept_is_refused(city: City, payload: object, told: str) -> None:
    ask = EmitEvent("deploy.finished", payload=payload)
    with pytest.raises(UsageError, match=told):
        city.run(judged, EMIT, ask, as_asked_by(city, owner("ada")))
    assert city.events("deploy.finished") == []


def test_the_list_begins_after_a_number_or_ends_with_the_newest(city: City) -> None:
    for number in range(4):
        city.emit("lamp.lit", {"n": number})
    told = [event.seq for event in city.events("lamp.lit")]

    def listed(**keys: Any) -> list[int]:
        ask = ListEvents(type="lamp.*", limit=2, **keys)
        return [event.seq for event in city.read(list_events, ask, city.context)]

    assert listed() == told[2:]
    assert listed(after=told[0]) == told[1:3]
    city.advance(hours=2)
    assert listed(since="1h") == []
    assert listed(since="3h") == told[2:]
    with pytest.raises(UsageError, match="neither a duration nor a time"):
        listed(since="yesterday")


@pytest.mark.parametrize("from_the_past", [False, True])
async def test_events_are_followed_from_now_on_or_from_a_number_up_to_so_many(
    city: City, *, from_the_past: bool
) -> None:
    city.emit("lamp.lit", {"n": 0})
    store, waker = open_store(city.place, CITY, Wakes()), NoticedWaker()
    host = cast("Host", SimpleNamespace(store=store, event_tail=EventTail(store, waker, SystemClock())))
    found = tail_events(host, TailEvents(type="lamp.*", after=0 if from_the_past else None, count=2), city.context)
    try:
        following = asyncio.create_task(collected(found))
        async with TimeLimit(30):
            await waker.followed.wait()
            city.emit("lamp.lit", {"n": 1})
            city.emit("lamp.lit", {"n": 2})
            waker.wake.set()
            assert await following == ([0, 1] if from_the_past else [1, 2])
    finally:
        await store.close()


async def collected(found: AsyncIterator[Event]) -> list[int]:
    return [event.payload["n"] async for event in found]


class NoticedWaker:
    """`followed` is set when somebody begins to wait."""

    def __init__(self) -> None:
        self.wake, self.followed = asyncio.Event(), asyncio.Event()

    def subscribe(self, *topics: str) -> asyncio.Event:
        assert topics == (TOPIC,)
        self.followed.set()
        return self.wake

    def unsubscribe(self, event: asyncio.Event) -> None:
        assert event is self.wake


def locked_by_somebody(city: City, run: str) -> str | None:
    assert isinstance(city.place, PostgresUrl)
    with psycopg.connect(city.place.url) as other:
        try:
            other.execute("SELECT 1 FROM runs WHERE city_id = %s AND id = %s FOR UPDATE NOWAIT", (CITY, run))
        except psycopg.errors.LockNotAvailable as error:
            return type(error).__name__
    return None


def end(city: City, run: str) -> None:
    from lamplighter.domain.runs.model import By, Mover
    from lamplighter.services.runs import review

    ending = review.Ending(RunState.CANCELED, "canceled")
    city.run(review.end, run, ending, By(Mover.PERSON, "ada"), ctx=city.context)
