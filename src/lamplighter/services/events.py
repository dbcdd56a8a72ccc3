"""Events: append, read after a cursor, follow as they come, prune."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from lamplighter.domain.access import Caller, RunOver, Verb, require
from lamplighter.domain.events import LONGEST_PAYLOAD, TOPIC, Event, EventFilter, NewEvent, checked_outside_type
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import UsageError
from lamplighter.store.tx import Store, Tx

if TYPE_CHECKING:
    import asyncio  # only for annotations: short commands import this module too

PAGE = 500
POLL = timedelta(seconds=1)
PRUNE_AT_ONCE = 1000


class Waker(Protocol):
    def subscribe(self, *topics: str) -> "asyncio.Event": ...

    def unsubscribe(self, event: "asyncio.Event") -> None: ...


def emit(tx: Tx, event: NewEvent, *, caller: Caller, payload_size: int = 0) -> None:
    """Append an event from outside.

    Raises UsageError for an invalid type or a payload over the limit, ProductFamily for a type that only Lamplighter
    emits, Forbidden for a caller without the right, RunOver for the token of an ended run.
    """
    require(caller, Verb.EMIT_EVENT)
    checked_outside_type(event.type)
    if payload_size > LONGEST_PAYLOAD:
        raise UsageError(
            f"A payload has at most {LONGEST_PAYLOAD} bytes; this one has {payload_size}.",
            hint="Put the data into a file and emit its path.",
        )
    require_live_run(tx, caller)
    tx.events.append(event)


def require_live_run(tx: Tx, caller: Caller) -> None:
    """Raise RunOver for an ended run's token. The run's row is locked, so the run cannot end before this commits."""
    if caller.token_run is None:
        return
    found = tx.runs.lock(caller.token_run)
    if found is None or found.run.ended:
        raise RunOver(caller, None if found is None else found.run.state.value)


def latest(tx: Tx, wanted: EventFilter, *, limit: int) -> list[Event]:
    return tx.events.latest(wanted, limit=limit)


def page(tx: Tx, wanted: EventFilter) -> tuple[list[Event], int]:
    """The next matching events, and the cursor for the next page: all matches up to it have been returned."""
    head = tx.events.head()
    events = tx.events.next_matching(wanted, limit=PAGE)
    return events, events[-1].seq if len(events) == PAGE else max(head, wanted.after)


def head(tx: Tx) -> int:
    return tx.events.head()


def prune(tx: Tx, *, before: datetime, spared_after: int) -> int:
    """Delete a batch of events older than `before`; those above `spared_after` are still to be read and stay."""
    return tx.events.prune(before=before, spared_after=spared_after, limit=PRUNE_AT_ONCE)


async def follow(store: Store, wanted: EventFilter, *, waker: Waker, clock: Clock) -> AsyncGenerator[Event, None]:
    """Yield every matching event above `wanted.after`, once and in order, as it comes; ends only when it is closed."""
    wake = waker.subscribe(TOPIC)
    try:
        while True:
            wake.clear()
            events, cursor = await store.read(page, wanted)
            for event in events:
                yield event
            wanted = replace(wanted, after=cursor)
            if len(events) < PAGE:
                await clock.wait(wake, at_most=POLL)
    finally:
        waker.unsubscribe(wake)
