"""Side effects through the ledger, on both databases: once where that can be known, else with the doubt on record."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from lamplighter.domain.delivery.effects import Absent, Answer, Effect, EffectChanged, Found
from lamplighter.services.effects import Ledger, Refused
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.tx import Store
from lamplighter.store.url import Place, open_store
from lamplighter.testing.clock import FakeClock


class Destination:
    """Takes what it is sent, or fails as it is told."""

    def __init__(self) -> None:
        self.took: list[str] = []
        self.fail: Exception | None = None
        self.answer: Answer | None = None

    async def send(self, effect: Effect) -> Mapping[str, Any]:
        if self.fail is not None:
            raise self.fail
        self.took.append(effect.id)
        return {"number": len(self.took)}

    async def look(self, _effect: Effect) -> Answer:
        assert self.answer is not None
        return self.answer


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    found = open_store(place, "cty_test", Wakes())
    yield found
    await found.close()


async def once(store: Store, there: Destination, request: Any = "hello", *, asks: bool = False) -> Mapping[str, Any]:
    ledger = Ledger(store, FakeClock())
    if asks:
        return await ledger.once("notify:1", "notify", request, run="run_1", send=there.send, look=there.look)
    return await ledger.once("notify:1", "notify", request, run="run_1", send=there.send)


async def kept(store: Store) -> Effect | None:
    return await store.read(lambda tx: next(iter(tx.effects.of("run_1")), None))


async def test_what_was_done_is_not_done_again(store: Store) -> None:
    there = Destination()
    assert await once(store, there) == await once(store, there) == {"number": 1}
    assert there.took == ["notify:1"]


async def test_another_request_under_the_same_id_is_refused(store: Store) -> None:
    there = Destination()
    await once(store, there)
    with pytest.raises(EffectChanged):
        await once(store, there, "something else")


async def test_a_destination_that_said_no_leaves_nothing(store: Store) -> None:
    there = Destination()
    there.fail = Refused("no such channel")
    with pytest.raises(Refused):
        await once(store, there)
    assert await kept(store) is None


async def test_a_cut_off_try_is_looked_up_first(store: Store) -> None:
    there = Destination()
    there.fail = TimeoutError()
    with pytest.raises(TimeoutError):
        await once(store, there, asks=True)
    there.fail, there.answer = None, Found({"number": 7})
    assert await once(store, there, asks=True) == {"number": 7}
    assert there.took == []


async def test_what_did_not_arrive_is_sent_again(store: Store) -> None:
    there = Destination()
    there.fail = TimeoutError()
    with pytest.raises(TimeoutError):
        await once(store, there, asks=True)
    there.fail, there.answer = None, Absent()
    await once(store, there, asks=True)
    effect = await kept(store)
    assert effect is not None
    assert (effect.state, effect.tries, effect.doubts) == ("done", 2, 0)


async def test_where_nobody_can_be_asked_the_doubt_is_on_record(store: Store) -> None:
    there = Destination()
    there.fail = TimeoutError()
    with pytest.raises(TimeoutError):
        await once(store, there)
    there.fail = None
    await once(store, there)
    effect = await kept(store)
    assert effect is not None
    assert (effect.state, effect.doubts, len(there.took)) == ("done", 1, 1)


async def test_a_refusal_after_a_lost_answer_keeps_the_doubt(store: Store) -> None:
    """The first try may have arrived: that the second was refused does not change it."""
    there = Destination()
    for failure in (TimeoutError(), Refused("no"), Refused("no"), None):
        there.fail = failure
        if failure is None:
            await once(store, there)
        else:
            with pytest.raises(type(failure)):
                await once(store, there)
    found = await kept(store)
    assert found is not None
    assert (found.state, found.doubts) == ("done", 1)
