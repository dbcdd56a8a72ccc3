"""Receiving a delivery: verified over the raw bytes, then one transaction keeps it with the item that processes it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from lamplighter.domain.access import Unauthenticated
from lamplighter.domain.connections.reading import delivery_id
from lamplighter.domain.connections.signatures import untimely, unverified
from lamplighter.domain.connections.verdicts import Judged
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.kit import json_text
from lamplighter.kit.clock import Clock
from lamplighter.kit.errors import LampError, NotFound, UsageError
from lamplighter.kit.ids import IdSource
from lamplighter.kit.nearest import full_stop
from lamplighter.services.context import Context, acting
from lamplighter.services.secret_values import StoredSecrets
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.secrets import SecretRow
from lamplighter.store.tx import Store, Tx

ACTOR = "hooks"
LONGEST_HEADER = 300
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


@dataclass
class Receiver:
    store: Store
    secrets: StoredSecrets
    clock: Clock
    ids: IdSource

    async def source(self, connection: str) -> "Source":
        """The connection and the secrets that prove its deliveries. Raises ConnectionUnknown, SecretLocked."""
        now = self.clock.now()
        row, sealed = await self.store.read(source_of, connection, now)
        return Source(row, await self.secrets.values(sealed))

    async def receive(
        self, source: "Source", headers: Mapping[str, str], body: bytes, admit: Callable[[], None] | None = None
    ) -> Received:
        """Keep a delivery; when this returns, it is committed. `admit` may refuse one that was verified.

        Raises NotVerified, UsageError.
        """
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
        return await self.store.transact(keep, delivery, acting(ACTOR, now, self.ids))


def source_of(tx: Tx, connection: str, now: datetime) -> tuple[ConnectionRow, list[SecretRow]]:
    """Raises ConnectionUnknown."""
    row = tx.connections.get(connection)
    if row is None:
        raise ConnectionUnknown(connection)
    which = [CURRENT] + ([PREVIOUS] if row.previous_until is not None and row.previous_until > now else [])
    sealed = [tx.secrets.get(secret_name(connection, one)) for one in which]
    return row, [one for one in sealed if one is not None]


def keep(tx: Tx, delivery: DeliveryRow, ctx: Context) -> Received:
    """Keep it with the item that processes it; one that was sent before only counts, unless it could still fire."""
    kept = tx.deliveries.add(delivery)
    tx.connections.came(delivery.connection, ctx.now)
    if kept != delivery.id and not may_fire_still(tx, kept):
        return Received(kept, repeated=True)
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.PROCESS_DELIVERY, {"delivery": kept}, ctx.now))
    return Received(kept, repeated=kept != delivery.id)


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
    if not all(map(_can_be_kept, _texts(payload))):
        raise UsageError("A text in the body has a character that no text has.", hint="Send Unicode without NUL.")
    return text, payload


def _can_be_kept(text: str) -> bool:
    """No database keeps a NUL, or half of a pair of surrogates."""
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


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
