"""The places of a destination: how many notices go to it at once, and how long the others wait."""

from datetime import timedelta

import pytest

from lamplighter.daemon.pipeline.under_way import LONGEST_WAIT, Places

HERE, THERE = "here", "there"


def seconds(places: Places, destination: str, most: int) -> float | None:
    wait = places.full(destination, most)
    return None if wait is None else wait.total_seconds()


@pytest.mark.parametrize("most", [1, 3])
def test_a_destination_has_so_many_places_and_no_other_one_s(most: int) -> None:
    places = Places()
    for _ in range(most):
        assert places.full(HERE, most) is None
        places.take(HERE)
    assert places.full(HERE, most) is not None
    assert places.full(THERE, most) is None
    places.leave(HERE)
    assert places.full(HERE, most) is None


def test_without_any_number_there_is_one_place() -> None:
    places = Places()
    assert places.full(HERE, 0) is None
    places.take(HERE)
    assert places.full(HERE, 0) == timedelta(seconds=2)


def test_each_that_waits_already_makes_the_next_wait_longer_up_to_a_minute() -> None:
    places = Places()
    for _ in range(2):
        places.take(HERE)
    assert [seconds(places, HERE, 2) for _ in range(4)] == [1, 2, 2, 3]
    for _ in range(200):
        last = places.full(HERE, 2)
    assert last == LONGEST_WAIT


def test_the_waits_begin_anew_once_none_is_under_way() -> None:
    places = Places()
    places.take(HERE)
    places.take(HERE)
    assert [seconds(places, HERE, 2) for _ in range(4)] == [1, 2, 2, 3]
    places.leave(HERE)
    places.take(HERE)
    assert seconds(places, HERE, 2) == 3, "another one was under way all the time"
    places.leave(HERE)
    places.leave(HERE)
    assert (places.busy, places.put_off) == ({}, {})
    places.take(HERE)
    places.take(HERE)
    assert seconds(places, HERE, 2) == 1


def test_where_places_come_free_the_waits_stay_short() -> None:
    """A destination that is busy all the time, but takes what waits, has no reason to keep anything for a minute."""
    places = Places()
    for _ in range(20):
        places.take(HERE)
    waits = []
    for _ in range(500):
        waits.append(seconds(places, HERE, 20))
        places.leave(HERE)
        places.take(HERE)
    assert set(waits) == {1}
