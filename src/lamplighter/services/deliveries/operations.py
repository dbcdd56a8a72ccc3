"""What came in: listed with the verdict of each trigger, shown in full, judged again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.kit.clock import from_rfc3339
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.ids import oldest_id
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.deliveries.receiving import processed_by
from lamplighter.services.deliveries.views import DeliveryDetail, DeliveryView, view_of
from lamplighter.services.operation import Http, Page, read, transaction
from lamplighter.services.resolving import LAST, the_one
from lamplighter.services.runs.inputs import without_secrets
from lamplighter.store.tx import Tx

MOST_REPLAYED = 1000
MOST_NAMES = 1000
TOGETHER = 50
"""How many deliveries are judged again in one transaction."""


class DeliveryUnknown(NotFound):
    def __init__(self, delivery: str) -> None:
        super().__init__(f"There is no delivery `{delivery}`.", hint="`lamp delivery list` shows those there are.")


@dataclass(frozen=True)
class DeliveriesReplayed:
    deliveries: Sequence[str]
    replayed: int


@dataclass(frozen=True)
class ListDeliveries:
    """What came in, newest first, with what each trigger made of it."""

    connection: str | None = given("Only on this connection.", default=None)
    before: str | None = given(
        "Only those older than this one: the next page.", default=None, metavar="ID", names="delivery"
    )
    limit: int = given("At most so many.", default=50, least=1, most=1000)


@dataclass(frozen=True)
class ShowDelivery:
    """A delivery with its payload and what each trigger made of it."""

    delivery: str = given("Its id or the end of it, or `last`.", key="delivery_id", metavar="ID", positional=True)


@dataclass(frozen=True)
class ReplayDeliveries:
    """Have deliveries judged again, by the triggers as they are now; what has fired for a trigger fires no more."""

    deliveries: Sequence[str] = given("Their ids.", default=(), metavar="ID", positional=True)
    connection: str | None = given("All of this connection, within the time that is named.", default=None)
    since: str | None = given("From then on: a time, or a duration ago.", default=None, metavar="TIME")
    until: str | None = given("Before then.", default=None, metavar="TIME")


def list_deliveries(tx: Tx, ask: ListDeliveries, _ctx: Context) -> list[DeliveryView]:
    rows = tx.deliveries.page(connection=ask.connection, before=ask.before, limit=ask.limit)
    verdicts = tx.deliveries.verdicts(row.id for row in rows) if rows else {}
    return [view_of(row, verdicts.get(row.id, ())) for row in rows]


def show_delivery(tx: Tx, ask: ShowDelivery, _ctx: Context) -> DeliveryDetail:
    """Raises DeliveryUnknown."""
    row = tx.deliveries.get(_meant(tx, ask.delivery))
    if row is None:
        raise DeliveryUnknown(ask.delivery)
    told = view_of(row, tx.deliveries.verdicts([row.id]).get(row.id, ()))
    return DeliveryDetail(**told.__dict__, headers=dict(row.headers), payload=without_secrets(json.loads(row.body)))


def replay(tx: Tx, ask: ReplayDeliveries, ctx: Context) -> DeliveriesReplayed:
    """Raises UsageError, DeliveryUnknown."""
    ids = _ranged(tx, ask, ctx.now) if ask.since or ask.until else [_meant(tx, one) for one in ask.deliveries]
    if not ids and not (ask.since or ask.until):
        raise UsageError("Name a delivery, or a time with --since.", hint="`lamp delivery list` shows those there are.")
    for first in range(0, len(ids), TOGETHER):
        tx.outbox.add(processed_by(ids[first : first + TOGETHER], ctx))
    if ids:
        tx.events.append(ctx.event("delivery.replayed", subject=ask.connection, payload={"count": len(ids)}))
    return DeliveriesReplayed(ids, len(ids))


def _ranged(tx: Tx, ask: ReplayDeliveries, now: datetime) -> list[str]:
    if ask.deliveries:
        raise UsageError("Name deliveries or a time, not both.")
    first = oldest_id("dlv", _time(ask.since, now)) if ask.since else ""
    last = oldest_id("dlv", _time(ask.until, now)) if ask.until else "~"
    found = tx.deliveries.span(connection=ask.connection, first=first, last=last, limit=MOST_REPLAYED + 1)
    if len(found) > MOST_REPLAYED:
        raise UsageError(f"These are more than {MOST_REPLAYED} deliveries.", hint="Name a shorter time.")
    return found


def _time(text: str, now: datetime) -> datetime:
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"`{text}` is neither a duration nor a time.", hint="Such as 2h, or 2026-11-15T08:00:00Z."
        ) from None


def _meant(tx: Tx, text: str) -> str:
    """The id that is meant: this one, or one of the newest by its end. Raises DeliveryUnknown, IdAmbiguous."""
    if tx.deliveries.exists(text):
        return text
    newest = tx.deliveries.newest(limit=1 if text == LAST else MOST_NAMES)
    if text == LAST and newest:
        return newest[0]
    found = the_one(text, "delivery", newest)
    if found is None:
        raise DeliveryUnknown(text)
    return found


LIST = read("delivery.list", Verb.READ, ListDeliveries, list[DeliveryView], list_deliveries,
            http=Http("GET", "/deliveries", page=Page("before", "id")))  # fmt: skip
SHOW = read("delivery.show", Verb.READ, ShowDelivery, DeliveryDetail, show_delivery,
            http=Http("GET", "/deliveries/{delivery}"))  # fmt: skip
REPLAY = transaction("delivery.replay", Verb.WRITE_CONNECTIONS, ReplayDeliveries, DeliveriesReplayed, replay,
                     http=Http("POST", "/deliveries/replay"))  # fmt: skip
