"""What is reported of ended runs as spans: read from what is on record, in the order in which runs ended.

How far it was reported is kept in the city's row, so that a process that dies in between loses nothing: the next one
reports the same spans, with the same ids, again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.events import Event
from lamplighter.domain.runs import tracing
from lamplighter.domain.runs.model import Run
from lamplighter.domain.runs.spans import Moment, Recorded, Said, Worked
from lamplighter.domain.runs.tracing import SpanContext
from lamplighter.kit.errors import Conflict
from lamplighter.services.rollups import ENDS, run_of
from lamplighter.store.sessions import SessionRow
from lamplighter.store.trigger_events import TriggerEvent
from lamplighter.store.tx import Tx

AT_ONCE = 500
RUNS_AT_ONCE = 50
SAID_AT_ONCE = 5000
"""So many entries of transcripts are enough for one look, which reads those of one run whole."""
LAST_WORDS = timedelta(seconds=30)
"""So long after a run's end its session may still write; it is reported when that has ended, or then."""
KEPT = timedelta(days=1)
"""What ended longer ago than this is reported no more."""
MOST_LINKS = 16


@dataclass(frozen=True)
class Ended:
    """Runs to report. Once they are, or if there are none, the position moves from `before` to `after`."""

    runs: list[Recorded]
    before: int | None
    after: int | None
    missed: int = 0
    """How many ended too long ago."""
    waits: bool = False
    """Whether a run that has ended is not reported yet, because its session goes on."""

    @property
    def moves(self) -> bool:
        return self.after != self.before


def next_ended(tx: Tx, *, now: datetime, public_url: str = "", city: str = "") -> Ended:
    """The next runs whose ends were not reported; where nothing ever was, those that end from now on."""
    before = tx.cities.traced()
    if before is None:
        return Ended([], None, tx.events.head())
    events = tx.events.after(before, limit=AT_ONCE)
    ends = {event.seq: str(run_of(event)) for event in events if _tells_end(event)}
    rows = tx.runs.some(ends.values()) if ends else {}
    found: list[Recorded] = []
    after, missed, said = before, 0, 0
    for event in events:
        row = rows.get(ends.get(event.seq, ""))
        if row is not None and event.at < now - KEPT:
            missed += 1
        elif row is not None:
            if len(found) == RUNS_AT_ONCE:
                break
            sessions = tx.sessions.of_run(row.id)
            if _may_say_more(sessions, event.at, now):
                return Ended(found, before, after, missed, waits=True)
            found.append(_recorded(tx, row, sessions, public_url, city))
            said += sum(len(one.said) for one in found[-1].sessions)
        after = event.seq
        if said >= SAID_AT_ONCE:
            break
    return Ended(found, before, after, missed)


def reported(tx: Tx, ended: Ended) -> None:
    """Raises Conflict if another process has reported since."""
    if ended.moves and not tx.cities.trace(ended.after, expected=ended.before):
        raise Conflict("Another process reports the ended runs of this city.", hint="The next look goes on from there.")


def begin_position(tx: Tx) -> None:
    """Where nothing was reported before, what ends from now on is."""
    if tx.cities.traced() is None:
        tx.cities.trace(tx.events.head(), expected=None)


def forget_position(tx: Tx) -> None:
    """Where spans are not reported, what ends is not kept for later."""
    before = tx.cities.traced()
    if before is not None:
        tx.cities.trace(None, expected=before)


def _tells_end(event: Event) -> bool:
    """A run that a person resolves has ended before."""
    return event.type in ENDS and run_of(event) is not None and not (event.payload or {}).get("before")


def _may_say_more(sessions: Iterable[SessionRow], ended: datetime, now: datetime) -> bool:
    return ended <= now < ended + LAST_WORDS and any(one.ended_at is None for one in sessions)


def _recorded(tx: Tx, row: Run, sessions: Iterable[SessionRow], public_url: str, city: str) -> Recorded:
    event = None if row.trigger_event is None else tx.trigger_events.get(row.trigger_event)
    return Recorded(
        run=row,
        sender=tracing.sender_of(_payload(event)),
        timeline=[Moment(one.at, one.type, one.to_state, _mapping(one.data)) for one in tx.runs.events(row.id)],
        sessions=[_worked(tx, one) for one in sessions],
        links=tuple(_links(tx, row, event)),
        url=f"{public_url.rstrip('/')}/runs/{row.id}" if public_url else "",
        city=city,
    )


def _worked(tx: Tx, row: SessionRow) -> Worked:
    said = [Said(one.number, one.at, one.kind, one.body) for one in tx.transcripts.after(row.id)]
    return Worked(row.id, row.started_at, row.ended_at, row.program_session, row.exit_status, said)


def _links(tx: Tx, row: Run, event: TriggerEvent | None) -> Iterator[SpanContext]:
    """The runs that it repeats or goes on with, those whose events fired it, and the senders of several deliveries."""
    events = [one for one in _payload(event).get("events") or [] if isinstance(one, Mapping)]
    named = [row.retries, row.continues, *(one.get("run") for one in events)]
    others = dict.fromkeys(one for one in named if isinstance(one, str) and one != row.id)
    rows = tx.runs.some(list(others)[:MOST_LINKS])
    fired = tx.trigger_events.some([one.trigger_event for one in rows.values() if one.trigger_event is not None])
    yield from (_own(one, fired) for one in (rows.get(name) for name in others) if one is not None)
    senders = (tracing.sender_of(one) for one in events[:MOST_LINKS])
    own = tracing.sender_of(_payload(event))
    yield from (one for one in senders if one is not None and one != own)


def _own(row: Run, fired: Mapping[str, TriggerEvent]) -> SpanContext:
    return tracing.context_of(row.id, tracing.sender_of(_payload(fired.get(row.trigger_event or ""))))


def _payload(event: TriggerEvent | None) -> Mapping[str, Any]:
    return _mapping(None if event is None else event.payload)


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
