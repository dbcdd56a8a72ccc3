"""What failed lately for want of the database is known to the store, and shown by status until it is over."""

from typing import Any

import pytest

from lamplighter.store.engine.jobs import Job, Outcome, Trouble
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.errors import StoreFull
from lamplighter.store.tx import Tx
from lamplighter.store.url import Place, open_store

CITY = "cty_1"


def full(_tx: Tx) -> None:
    raise StoreFull("town.db")


def fine(tx: Tx) -> Any:
    return tx.cities.find()


async def test_a_write_that_found_no_room_is_told_although_others_find_some(place: Place) -> None:
    store = open_store(place, CITY, Wakes())
    try:
        assert store.trouble is None
        with pytest.raises(StoreFull):
            await store.transact(full)
        await store.transact(fine)
        assert store.trouble == StoreFull("town.db").message
    finally:
        await store.close()


async def test_other_errors_are_no_trouble_of_the_store(place: Place) -> None:
    def bug(_tx: Tx) -> None:
        raise ZeroDivisionError

    store = open_store(place, CITY, Wakes())
    try:
        with pytest.raises(ZeroDivisionError):
            await store.transact(bug)
        assert store.trouble is None
    finally:
        await store.close()


def test_trouble_is_over_half_a_minute_after_the_last_failure() -> None:
    seconds = [100.0]
    trouble = Trouble(lambda: seconds[0])
    job: Job = None  # type: ignore[assignment]  # it is not looked at
    trouble.note([Outcome(job, error=StoreFull("town.db"))])
    seconds[0] += 29.9
    assert trouble.lately is not None
    seconds[0] += 0.1
    assert trouble.lately is None
