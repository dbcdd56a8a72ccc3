"""Receiving a delivery: verified over the raw bytes, then one transaction keeps it with the item that processes it."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

from lamplighter.domain.access import Unauthenticated
from lamplighter.domain.connections.reading import delivery_id
from lamplighter.domain.connections.signatures import untimely, unverified
from lamplighter.domain.connections.verdicts import Judged
from lamplighter.domain.delivery.outbox import Item, ItemKind, new_item
from lamplighter.kit import json_text
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import Conflict, LampError, NotFound, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.nearest import full_stop
from lamplighter.services.context import Context, acting
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.store.connections import ConnectionRow, Version
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.engine import Refused, batched, one
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Store, Tx

ACTOR = "hooks"
LONGEST_HEADER = 300
JUDGED_AT_ONCE = 20
FLOOD_WAIT = timedelta(seconds=2)
KEPT_HEADERS = frozenset({
    "content-type", "user-agent", "webhook-id", "webhook-timestamp", "x-github-event", "x-github-delivery",
    "x-github-hook-id", "linear-event", "linear-delivery", "sentry-hook-resource", "sentry-hook-timestamp",
    "request-id", "idempotency-key", "x-request-id", "traceparent",
})  # fmt: skip
"""What is kept of the headers: signatures and tokens are not."""


class ConnectionUnknown(NotFound):
    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        super().__init__(
            f"There is no connection `{name}`{full_stop(name, known)}",
            hint="`lamp connection list` shows those there are.",
        )


class NotVerified(Unauthenticated):
    def __init__(self, connection: str, why: str) -> None:
        LampError.__init__(
            self,
            f"The delivery to {connection} was not verified: {why}.",
            hint="Give the sender the secret that `lamp connection create` or `rotate` showed.",
        )


_NO_TEXT = re.compile("[\\0\ud800-\udfff]")


@dataclass(frozen=True)
class Received:
    """`repeated` says that its sender had sent it before."""

    id: str
    repeated: bool = False


def secret_name(connection: str, which: str) -> str:
    """The name of a connection's secret; no person can give such a name, because of the slashes."""
    return f"connection/{connection}/{which}"


CURRENT, PREVIOUS = "current", "previous"


@dataclass(frozen=True)
class Source:
    """A connection, and the secrets that prove its deliveries."""

    connection: ConnectionRow
    secrets: Sequence[str]

    def holds(self, now: datetime) -> bool:
        """Whether its secrets are still those that prove a delivery: the one before the present one ends by itself."""
        until = self.connection.previous_until
        return len(self.secrets) < 2 or (until is not None and until > now)


class SourceChanged(Conflict):
    """The connection is another than the one with which a delivery was verified: it was rotated or deleted."""

    def __init__(self, connection: str) -> None:
        super().__init__(f"The connection {connection} was changed meanwhile.", hint="Send the delivery again.")


@dataclass
class Pace:
    """Some deliveries of each second are judged at once. In a flood the others wait, to be judged many at a time."""

    began: float = float("-inf")
    count: int = 0

    def wait(self, now: float) -> timedelta:
        """How long the next delivery waits; `now` is in seconds."""
        if now - self.began >= 1:
            self.began, self.count = now, 0
        self.count += 1
        return timedelta(0) if self.count <= JUDGED_AT_ONCE else FLOOD_WAIT


@dataclass
class Receiver:
    """Remembers the connections whose deliveries it verified, so that most need no read.

    What it remembers may be old, because other processes rotate and delete connections: so a delivery that it does not
    verify is verified once more with what the store has, and one that it verifies is only kept if the connection is
    still the same in the transaction that keeps it.
    """

    store: Store
    secrets: StoredSecrets
    clock: Clock
    ids: IdSource
    _known: dict[str, Source] = field(default_factory=dict)
    _pace: Pace = field(default_factory=Pace)

    async def source(self, connection: str) -> Source:
        """The connection and the secrets that prove its deliveries. Raises ConnectionUnknown, SecretLocked."""
        now = self.clock.now()
        row, sealed = await self.store.read(source_of, connection, now)
        return Source(row, await self.secrets.values(sealed))

    async def receive(
        self, connection: str, headers: Mapping[str, str], body: bytes, admit: Callable[[], None] | None = None
    ) -> Received:
        """Keep a delivery; when this returns, it is committed. `admit` may refuse one that was verified.

        Raises ConnectionUnknown, SecretLocked, NotVerified, UsageError, SourceChanged.
        """
        known = self._known.get(connection)
        if known is not None and known.holds(self.clock.now()):
            try:
                return await self._take(known, headers, body, admit)
            except (NotVerified, SourceChanged):
                self._known.pop(connection, None)  # another delivery may have found it out too
        source = await self.source(connection)
        got = await self._take(source, headers, body, admit)
        self._known[connection] = source
        return got

    async def _take(
        self, source: Source, headers: Mapping[str, str], body: bytes, admit: Callable[[], None] | None
    ) -> Received:
        row, now = source.connection, self.clock.now()
        why = unverified(row.provider, source.secrets, headers, body, now)
        if why:
            raise NotVerified(row.name, why)
        if admit is not None:
            admit()
        text, payload = (
            await asyncio.to_thread(json_of, headers, body) if len(body) > 65_536 else json_of(headers, body)
        )
        if why := untimely(row.provider, payload, now):
            raise NotVerified(row.name, why)
        kept = {name: headers[name][:LONGEST_HEADER] for name in sorted(KEPT_HEADERS & headers.keys())}
        external = delivery_id(row.provider, headers, payload, body)
        delivery = DeliveryRow(self.ids.make("dlv"), row.name, external, kept, text, now)
        wait, ctx = self._pace.wait(self.clock.monotonic()), acting(ACTOR, now, self.ids)
        return await self.store.transact(keep_verified, row, delivery, wait, ctx)


def source_of(tx: Tx, connection: str, now: datetime) -> tuple[ConnectionRow, list[SecretRow]]:
    """Raises ConnectionUnknown."""
    row = tx.connections.get(connection)
    if row is None:
        raise ConnectionUnknown(connection)
    which = [CURRENT] + ([PREVIOUS] if row.previous_until is not None and row.previous_until > now else [])
    sealed = [tx.secrets.get(secret_name(connection, one)) for one in which]
    return row, [one for one in sealed if one is not None]


@dataclass(frozen=True, slots=True)
class Keeping:
    """A delivery to be kept, and how long until it is judged.

    `verified_by` is the connection as it was when the delivery was verified.
    """

    delivery: DeliveryRow
    ctx: Context
    verified_by: ConnectionRow | None = None
    wait: timedelta = timedelta(0)

    def is_still_verified(self, now: Version | None) -> bool:
        return self.verified_by is None or self.verified_by.version.is_same(now)


def keep(tx: Tx, delivery: DeliveryRow, ctx: Context) -> Received:
    """Keep it with the item that processes it; one that was sent before only counts, unless it could still fire."""
    return one(keep_many(tx, [Keeping(delivery, ctx)]))


def _verified(connection: ConnectionRow, delivery: DeliveryRow, wait: timedelta, ctx: Context) -> Keeping:
    return Keeping(delivery, ctx, connection, wait)


def keep_many(tx: Tx, asked: Sequence[Keeping]) -> list[Received | Refused]:
    """As `keep` and `keep_verified`, for each of them; one item processes all that are new."""
    known = tx.connections.versions({ask.delivery.connection for ask in asked})
    good = [ask for ask in asked if ask.is_still_verified(known.get(ask.delivery.connection))]
    kept = dict(zip(map(id, good), tx.deliveries.add([ask.delivery for ask in good]), strict=True)) if good else {}
    answers: list[Received | Refused] = []
    fresh: list[str] = []
    for ask in asked:
        found = kept.get(id(ask))
        if found is None:
            answers.append(Refused(SourceChanged(ask.delivery.connection)))
            continue
        repeated = found != ask.delivery.id
        if not repeated or may_fire_still(tx, found):
            fresh.append(found)
        answers.append(Received(found, repeated=repeated))
    ctx = asked[0].ctx
    for name in sorted(known):
        tx.connections.came(known[name], ctx.now)
    if fresh:
        wait = min(ask.wait for ask in asked)
        tx.outbox.add(processed_by(fresh, ctx, after=wait), later=bool(wait))
    return answers


def processed_by(deliveries: Sequence[str], ctx: Context, *, after: timedelta = timedelta(0)) -> Item:
    """The item that processes these deliveries."""
    payload = {"deliveries": list(deliveries)}
    return new_item(ctx.ids.make("out"), ItemKind.PROCESS_DELIVERY, payload, ctx.now + after)


@batched(_verified, keep_many)
def keep_verified(tx: Tx, connection: ConnectionRow, delivery: DeliveryRow, wait: timedelta, ctx: Context) -> Received:
    """As `keep`, for a delivery that was verified with this state of its connection. Raises SourceChanged."""
    return one(keep_many(tx, [_verified(connection, delivery, wait, ctx)]))


def may_fire_still(tx: Tx, delivery: str) -> bool:
    """Whether it was processed and some trigger did not fire: that may be different now."""
    row = tx.deliveries.get(delivery)
    if row is None or row.state == "waiting":
        return False
    verdicts = tx.deliveries.verdicts([delivery]).get(delivery, [])
    return not verdicts or any(one.verdict != Judged.FIRED for one in verdicts)


def json_of(headers: Mapping[str, str], body: bytes) -> tuple[str, Any]:
    """The JSON of a body and its value; of a form, that of its `payload`. Raises UsageError."""
    try:
        text = body.decode("utf-8")
        if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            text = parse_qs(text, strict_parsing=True, max_num_fields=10)["payload"][0]
        payload = json_text.parse(text)
    except (ValueError, KeyError) as error:
        why = "there is no `payload` in it" if isinstance(error, KeyError) else str(error)[:200]
        raise UsageError(f"The body is not JSON that can be used: {why}.", hint="Send a JSON object.") from error
    if not isinstance(payload, dict):
        raise UsageError("The body is not a JSON object.", hint="Send one such as {}.")
    if "\\u" in text and not all(map(_can_be_kept, _texts(payload))):  # JSON has them as escapes only
        raise UsageError("A text in the body has a character that no text has.", hint="Send Unicode without NUL.")
    return text, payload


def _can_be_kept(text: str) -> bool:
    """No database keeps a NUL, or half of a pair of surrogates."""
    return _NO_TEXT.search(text) is None


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            left += one
