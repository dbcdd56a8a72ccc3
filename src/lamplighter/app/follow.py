"""Follows a city's events from a command, in an event loop of its own."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from lamplighter.app.wakeups import listening
from lamplighter.app.wiring import OpenCity
from lamplighter.domain.events import Event, EventFilter
from lamplighter.kit import aio
from lamplighter.services import events
from lamplighter.store.engine.wakes import Wakes
from lamplighter.store.url import open_store


def follow_events(
    city: OpenCity, wanted: EventFilter, show: Callable[[Event], None], *, count: int | None, from_now: bool
) -> None:
    """Call `show` with every event as it comes, until `count` were shown or the user interrupts."""
    city.warn_of_copy()
    aio.run(_follow(city, wanted, show, count, from_now=from_now))


async def _follow(
    city: OpenCity, wanted: EventFilter, show: Callable[[Event], None], count: int | None, *, from_now: bool
) -> None:
    wakes = Wakes()
    store = open_store(city.place, city.paths.city_id(), wakes)
    try:
        with listening(city.place, city.ids.make("tail"), wakes):
            if from_now and wanted.since is None:
                wanted = replace(wanted, after=await store.read(events.head))
            shown = 0
            async with aclosing(events.follow(store, wanted, waker=wakes, clock=city.clock)) as stream:
                async for event in stream:
                    show(event)
                    shown += 1
                    if shown == count:
                        return
    finally:
        await store.close()
