"""The transactions on the outbox: claim a batch, settle an item under its claim, recover items of dead workers."""

from collections.abc import Collection
from datetime import datetime

from lamplighter.domain.delivery.outbox import (
    BEGIN_WORK,
    HUNG_AFTER,
    Item,
    ItemKind,
    ItemState,
    NotClaimed,
    after_failure,
    claim,
    fence,
    hand_back,
    put_off,
    recover,
    settle,
    take_back,
)
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.model import By, Mover, RunState, Stage
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs
from lamplighter.services.runs.ending import Ending, end_if_active
from lamplighter.services.runs.views import GIVEN_UP
from lamplighter.store.run_rows import NewRunEvent
from lamplighter.store.tx import Tx

RECOVER_AT_ONCE = 200


def claim_due(
    tx: Tx, owner: str, now: datetime, *, limit: int, run: str | None = None, reach: Reach | None = None
) -> list[Item]:
    """Claim the longest due items for `owner`, except those another process is claiming."""
    return [claimed(tx, item, owner, now) for item in due(tx, now, limit=limit, run=run, reach=reach)]


def due(tx: Tx, now: datetime, *, limit: int, run: str | None, reach: Reach | None) -> list[Item]:
    """The longest due items, locked; while the city is paused, none that begins work."""
    return tx.outbox.due(now, limit=limit, run=run, reach=reach, without=held_by_pause(tx))


def held_by_pause(tx: Tx) -> frozenset[ItemKind]:
    city = tx.cities.find()
    return frozenset() if city is None or city.paused_at is None else BEGIN_WORK


def claimed(tx: Tx, item: Item, owner: str, now: datetime) -> Item:
    mine = claim(item, owner, now)
    tx.outbox.swap(item, mine, now=now)
    return mine


def next_due_at(tx: Tx, *, reach: Reach | None = None) -> datetime | None:
    """When the next item is due that may be taken then."""
    return tx.outbox.next_due_at(reach=reach, without=held_by_pause(tx))


def done(tx: Tx, item: Item, now: datetime) -> None:
    """Settle the item in the stage's own transaction. Raises NotClaimed when the claim was taken away meanwhile."""
    before = mine(tx, item)
    tx.outbox.swap(before, settle(before, item.claims), now=now)


def later(tx: Tx, item: Item, until: datetime, now: datetime, *, afresh: bool = False) -> None:
    """Make the item pending until `until`, without counting an attempt; afresh, it goes on with its next part.

    Raises NotClaimed.
    """
    before = mine(tx, item)
    tx.outbox.swap(before, put_off(before, item.claims, until, afresh=afresh), now=now)


def failed(tx: Tx, item: Item, error: str, *, permanent: bool, ctx: Context) -> Item:
    """Make the item pending after a delay, or failed; a failed stage item fails its run too. Raises NotClaimed."""
    before = mine(tx, item)
    after = after_failure(before, item.claims, error, ctx.now, permanent=permanent)
    return _left(tx, before, after, ctx=ctx)


def recover_of(tx: Tx, owner: str, *, ctx: Context) -> int:
    """Make the items that a dead owner had claimed due again, without counting an attempt; returns how many."""
    items = tx.outbox.claimed_by(owner)
    for item in items:
        _left(tx, item, recover(item, ctx.now), ctx=ctx)
    return len(items)


def give_back(tx: Tx, owner: str, *, spared: Collection[str], before: datetime, ctx: Context) -> int:
    """Release what `owner` claimed until `before`, except the items in `spared`, without counting an attempt."""
    items = [one for one in tx.outbox.claimed_by(owner) if one.id not in spared and _claimed_until(one, before)]
    for item in items:
        _left(tx, item, hand_back(item, ctx.now), ctx=ctx)
    return len(items)


def _claimed_until(item: Item, before: datetime) -> bool:
    return item.claimed_at is not None and item.claimed_at <= before


def take_back_hung(tx: Tx, *, ctx: Context) -> int:
    """Void claims older than five minutes, the last resort against workers that hang; returns how many items."""
    items = tx.outbox.hung(ctx.now - HUNG_AFTER, limit=RECOVER_AT_ONCE)
    for item in items:
        _left(tx, item, take_back(item, ctx.now), ctx=ctx)
    return len(items)


def mine(tx: Tx, item: Item) -> Item:
    """Lock the item and return its current row. Raises NotClaimed when the claim was taken away meanwhile."""
    found = tx.outbox.lock(item.id)
    if found is None:
        raise NotClaimed(item)
    fence(found, item.claims)
    return found


def _left(tx: Tx, before: Item, after: Item, *, ctx: Context) -> Item:
    tx.outbox.swap(before, after, now=ctx.now)
    run = after.payload.get("run")
    if after.gives_up_run and isinstance(run, str):
        ending = Ending(RunState.FAILED, "delivery_failed", Stage.DELIVERY, error=after.last_error)
        end_if_active(tx, run, ending, By(Mover.OUTBOX, ctx.actor.name), ctx=ctx)
    if after.state is ItemState.FAILED:
        _tell_given_up(tx, after, run, ctx)
    return after


def _tell_given_up(tx: Tx, item: Item, run: object, ctx: Context) -> None:
    """On the run's timeline, and in the inbox."""
    if isinstance(run, str) and tx.runs.lock(run) is not None:
        data = {"kind": item.kind, "item": item.id, "error": item.last_error}
        if item.payload.get("artifact"):
            data["artifact"] = str(item.payload["artifact"])
        tx.runs.add_event(NewRunEvent(run, ctx.now, GIVEN_UP, ctx.actor.name, data=data))
    need = needs.given_up(item, ctx.now)
    if need is not None:
        needs.open_item(tx, need, ctx=ctx)
