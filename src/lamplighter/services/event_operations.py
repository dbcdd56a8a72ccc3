"""What people, programs and agents can ask of the event log. It imports little, because its commands run often."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.events import LONGEST_PAYLOAD, Event, EventFilter, checked_outside_type
from lamplighter.kit.canonical import canonical
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import from_json, given
from lamplighter.services import events
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Kind, Operation, Page, read, stream
from lamplighter.store.tx import Tx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.host import Host

_AFTER = "Only events above this number."
_SINCE = "A duration ago (`2h`) or a time (2026-11-15T08:00Z)."
_SUBJECT = "What it is about."
_TYPE = "Exact, or all below a prefix: `bead.*`."
_LARGEST = 2**63 - 1

LONGEST_MESSAGE = 8000
LONGEST_SUBJECT = 500


@dataclass(frozen=True)
class ListEvents:
    """The newest events, oldest of them first; with --after the next ones above that number."""

    after: int | None = given(_AFTER, default=None, metavar="SEQ", least=0, most=_LARGEST)
    since: str | None = given(_SINCE, default=None, metavar="WHEN")
    subject: str | None = given(_SUBJECT, default=None)
    actor: str | None = given("Who did it.", default=None)
    type: str | None = given(_TYPE, default=None, metavar="TYPE")
    limit: int = given("At most so many.", default=50, least=1, most=100_000)


@dataclass(frozen=True)
class TailEvents:
    """Follow events as they come; from now on, or from --after SEQ. Ctrl-C ends it."""

    after: int | None = given(_AFTER, default=None, metavar="SEQ", least=0, most=_LARGEST)
    since: str | None = given(_SINCE, default=None, metavar="WHEN")
    subject: str | None = given(_SUBJECT, default=None)
    actor: str | None = given("Who did it.", default=None)
    type: str | None = given(_TYPE, default=None, metavar="TYPE")
    count: int | None = given("Stop after so many.", default=None, least=1)


@dataclass(frozen=True)
class EmitEvent:
    """Append an event; any JSON may be its payload."""

    type: str
    subject: str | None = None
    message: str | None = None
    payload: Any = None


@dataclass(frozen=True)
class EmitEventForm:
    """Append a fact of your own to the city's event bus; automations may wait for it."""

    type: str = given("Words joined by dots, such as deploy.finished; not of a family that Lamplighter emits.")
    subject: str | None = given(_SUBJECT, default=None)
    message: str | None = given("A sentence for people.", default=None)
    payload: Mapping[str, Any] | None = given("Data for programs.", default=None)


@dataclass(frozen=True)
class EventEmitted:
    type: str
    subject: str | None
    emitted: bool = True


def list_events(tx: Tx, ask: ListEvents, ctx: Context) -> list[Event]:
    wanted = _filter(ask, ctx.now)
    find = tx.events.latest if ask.after is None else tx.events.next_matching
    return find(wanted, limit=ask.limit)


async def tail_events(host: "Host", ask: TailEvents, ctx: Context) -> AsyncIterator[Event]:
    wanted, shown = _filter(ask, ctx.now), 0
    if ask.after is None and wanted.since is None:
        wanted = replace(wanted, after=await host.store.read(events.head))
    async with aclosing(host.event_tail.follow(wanted)) as found:
        async for event in found:
            yield event
            shown += 1
            if shown == ask.count:
                return


def emit_event(tx: Tx, ask: EmitEvent, ctx: Context) -> EventEmitted:
    """Raises UsageError for a wrong type or payload, ProductFamily for a type that only Lamplighter emits."""
    checked_outside_type(ask.type)
    _check_payload(ask.payload)
    for name, text, most in (("message", ask.message, LONGEST_MESSAGE), ("subject", ask.subject, LONGEST_SUBJECT)):
        if text is not None and len(text) > most:
            raise UsageError(
                f"The {name} of an event has at most {most} characters; this one has {len(text)}.",
                hint="Put what is longer into the payload.",
            )
    tx.events.append(ctx.event(ask.type, subject=ask.subject, message=ask.message, payload=ask.payload))
    return EventEmitted(ask.type, ask.subject)


def _check_payload(payload: Any) -> None:
    try:
        size = 0 if payload is None else len(canonical(payload).encode())
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"The payload is not JSON that can be used: {error}.", hint="Pass an object of plain values."
        ) from error
    if size > LONGEST_PAYLOAD:
        raise UsageError(
            f"A payload has at most {LONGEST_PAYLOAD} bytes; this one has {size}.",
            hint="Put the data into a file and emit its path.",
        )


def _filter(ask: ListEvents | TailEvents, now: datetime) -> EventFilter:
    wanted = None if ask.type == "*" else ask.type
    return EventFilter(wanted, ask.actor, ask.subject, _since(ask.since, now), ask.after or 0)


def _since(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        return now - parse_duration(text)
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"`{text}` is neither a duration nor a time.", hint="Such as `2h` or `2026-11-15T08:00`."
        ) from None


def _asked(data: Mapping[str, Any]) -> EmitEvent:
    """Any JSON may be a payload, although tools are told to pass an object."""
    return from_json(EmitEvent, data, strict=False, filled=True)


LIST = read(
    "event.list",
    Verb.READ,
    ListEvents,
    list[Event],
    list_events,
    http=Http("GET", "/events", page=Page("after", "seq", ends=True)),
)
TAIL = stream(
    "event.tail", Verb.READ, TailEvents, Event, tail_events, http=Http("GET", "/events/tail", page=Page("after", "seq"))
)
EMIT: Operation[EmitEvent, EventEmitted] = Operation(
    "event.emit", Kind.TRANSACTION, Verb.EMIT_EVENT, EmitEvent, EventEmitted, emit_event,
    form=EmitEventForm, reads=_asked, patient=True, tool="event_emit", http=Http("POST", "/events", status=201),
)  # fmt: skip
