"""Polls: what a provider answered becomes deliveries, in the transaction that records how far it was read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lamplighter.domain.connections.polling import Polled
from lamplighter.kit.errors import UsageError
from lamplighter.services.context import Context
from lamplighter.services.deliveries.receiving import json_of, keep
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.polls import PollRow
from lamplighter.store.tx import Tx

ACTOR = "polls"
SOURCE = "polled"
LARGEST = 1 << 20


@dataclass(frozen=True)
class Learned:
    """What one answer told. `before` is the state it was asked with: of two who ask, the first is believed."""

    connection: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    polled: Sequence[Polled] = ()


def known(tx: Tx) -> list[PollRow]:
    return tx.polls.all()


def learn(tx: Tx, learned: Learned, ctx: Context) -> PollRow | None:
    """Keep what is new; None if the connection is gone, or another process has asked meanwhile."""
    row = tx.polls.lock(learned.connection)
    if row is None or row.state != learned.before:
        return None
    for one in learned.polled:
        if not tx.deliveries.is_known(row.connection, one.external_id):
            keep(tx, _delivery(row.connection, one, ctx), ctx)
    after = replace(row, state=learned.after, polled_at=ctx.now)
    tx.polls.save(after)
    return after


def settle(tx: Tx, connection: str, next_at: datetime, problem: str, failures: int) -> None:
    """Record when to ask again, and what is wrong."""
    row = tx.polls.lock(connection)
    if row is not None:
        tx.polls.save(replace(row, next_at=next_at, problem=problem, state={**row.state, "failures": failures}))


def _delivery(connection: str, one: Polled, ctx: Context) -> DeliveryRow:
    headers = {"content-type": "application/json", "x-github-event": one.event}
    text = json.dumps(one.payload, ensure_ascii=False)
    return DeliveryRow(ctx.ids.make("dlv"), connection, one.external_id, headers, text, ctx.now, source=SOURCE)


def can_be_kept(one: Polled) -> bool:
    """By the same rules as what is sent."""
    try:
        body = json.dumps(one.payload).encode()
        json_of({}, body)
    except (UsageError, RecursionError):
        return False
    return len(body) <= LARGEST
