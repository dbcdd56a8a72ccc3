"""A fresh city on each database in turn."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from automation_city import CITY, City

from lamplighter.kit.ids import IdSource
from lamplighter.store.url import Place, open_direct
from lamplighter.testing.clock import FakeClock


@pytest.fixture
def city(place: Place, fake_clock: FakeClock, ids: IdSource) -> Iterator[City]:
    store = open_direct(place, CITY)
    store.transact(lambda tx: tx.cities.ensure("test", fake_clock.now()))
    yield City(place, store, fake_clock, ids)
    store.close()


@pytest.fixture
def ask_at_once(place: Place) -> Callable[[list[Callable[..., Any]]], list[Any]]:
    """Carry out transactions side by side, each on a connection of its own."""

    def alone(transaction: Callable[..., Any]) -> Any:
        store = open_direct(place, CITY)
        try:
            return store.transact(transaction)
        finally:
            store.close()

    def ask(transactions: list[Callable[..., Any]]) -> list[Any]:
        with ThreadPoolExecutor(len(transactions)) as threads:
            return list(threads.map(alone, transactions))

    return ask
