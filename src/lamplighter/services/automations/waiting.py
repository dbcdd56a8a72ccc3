"""Reading the events that wait for an event gate, with the chain of causes of each."""

import json

from lamplighter.domain.automations.events import SeenEvent
from lamplighter.domain.automations.model import Event
from lamplighter.domain.events import Event as BusEvent
from lamplighter.domain.events import EventFilter
from lamplighter.store.tx import Tx

EVENTS_A_PAGE = 500
EVENTS_A_LOOK = 5000
BYTES_A_RUN = 4 << 20


def waiting_events(tx: Tx, gate: Event, cursor: int) -> tuple[tuple[SeenEvent, ...], list[BusEvent], bool]:
    """Events after the cursor that match the gate's type, with their causes, and as stored; whether more may wait."""
    found: list[BusEvent] = []
    size = 0
    while len(found) < EVENTS_A_LOOK:
        page = _page(tx, gate.on, found[-1].seq if found else cursor)
        for event in page:
            size += 200 + len(json.dumps(event.payload)) if event.payload is not None else 200
            if found and size > BYTES_A_RUN:
                return _seen(tx, found), found, True
            found.append(event)
        if len(page) < EVENTS_A_PAGE:
            return _seen(tx, found), found, False
        if len(found) > gate.batch:
            break
    return _seen(tx, found), found, True


def newest_seen(tx: Tx, wanted: EventFilter, *, limit: int = 1) -> tuple[SeenEvent, ...]:
    """The newest events that pass, each with its causes, oldest of them first; nothing if there is none."""
    return _seen(tx, tx.events.latest(wanted, limit=limit))


def _page(tx: Tx, on: str, after: int) -> list[BusEvent]:
    if on == "*":
        return tx.events.after(after, limit=EVENTS_A_PAGE)
    if on.endswith(".*"):
        return tx.events.next_matching(EventFilter(type=on, after=after), limit=EVENTS_A_PAGE)
    return tx.events.after_of_type(on, after, limit=EVENTS_A_PAGE)


def _seen(tx: Tx, events: list[BusEvent]) -> tuple[SeenEvent, ...]:
    runs = {event.run for event in events if event.run is not None}
    causes = tx.runs.causes(runs) if runs else {}
    return tuple(
        SeenEvent(
            event.seq,
            event.type,
            event.at,
            event.payload if isinstance(event.payload, dict) else {},
            causes.get(event.run or "", ()),
        )
        for event in events
    )
