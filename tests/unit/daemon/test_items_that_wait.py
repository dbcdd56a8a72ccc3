"""The dispatcher hears of items that are due a little later, also while it looks for those that are due."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from lamplighter.daemon.pipeline.dispatcher import POLL, SOON, Dispatcher
from lamplighter.domain.delivery.reach import Reach
from lamplighter.services import outbox
from lamplighter.testing.clock import FakeClock


class Store:
    """Has nothing that is due; an item comes in just after the look at when the next one is."""

    def __init__(self) -> None:
        self.comes = lambda: None

    async def read(self, work: object, *_args: object, **_named: object) -> None:
        assert work is outbox.next_due_at
        self.comes()

    async def transact(self, work: object, *_args: object, **_named: object) -> int:
        assert work is outbox.take_back_hung
        return 0


async def nothing(*_args: object) -> None:
    return None


async def test_an_item_that_comes_while_it_looks_is_looked_for_when_it_is_due(fake_clock: FakeClock) -> None:
    store = Store()
    worker: Any = SimpleNamespace(
        give_back=nothing, adopt=nothing, room=5, me=SimpleNamespace(actor="worker"),
        active=SimpleNamespace(reach=Reach(None, frozenset())),
    )  # fmt: skip
    made = Dispatcher(
        cast(Any, store), fake_clock, cast(Any, SimpleNamespace()), worker, cast(Any, None),
        cast(Any, SimpleNamespace(check=nothing)),
    )  # fmt: skip
    await made.tick()
    assert made.until_next() == POLL
    fake_clock.advance(timedelta(seconds=1))
    store.comes = made._item_waits
    made._next = fake_clock.now()  # something was due when it began to look
    await made.tick()
    assert made.until_next() <= SOON
    assert not made.wake.is_set()
    store.comes = lambda: None
    fake_clock.advance(SOON)
    await made.tick()
    assert made.until_next() == POLL
