"""A fresh city on each database in turn."""

from collections.abc import Iterator

import pytest

from automation_city import CITY, City
from lamplighter.kit.ids import IdSource
from lamplighter.store.place import Place, open_direct
from lamplighter.testing.clock import FakeClock


@pytest.fixture
def city(place: Place, fake_clock: FakeClock, ids: IdSource) -> Iterator[City]:
    store = open_direct(place, CITY)
    store.transact(lambda tx: tx.cities.ensure("test", fake_clock.now()))
    yield City(place, store, fake_clock, ids)
    store.close()
