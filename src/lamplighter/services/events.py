"""The event log: read after a cursor, pruned. To follow events as they come: `event_tail`."""

from datetime import datetime, timedelta

from lamplighter.domain.events import Event, EventFilter
from lamplighter.store.tx import Tx

PAGE = 500
POLL = timedelta(seconds=1)
PRUNE_AT_ONCE = 1000


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
