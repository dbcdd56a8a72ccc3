"""The transactions on the outbox: claim a batch, settle an item under its claim, recover items of dead workers."""

from datetime import datetime

from lamplighter.domain.acts import Act
from lamplighter.domain.delivery.outbox import (
    HUNG_AFTER,
    Item,
    NotClaimed,
    after_failure,
    claim,
    fence,
    put_off,
    recover,
    settle,
    take_back,
)
from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.model import By, Mover, RunState, Stage
from lamplighter.kit.ids import IdSource
from lamplighter.store.tx import Tx

RECOVER_AT_ONCE = 200


def claim_due(
    tx: Tx, owner: str, now: datetime, *, limit: int, run: str | None = None, reach: Reach | None = None
) -> list[Item]:
    """Claim the longest due items for `owner`, except those another process is claiming; none in a paused city."""
    return [claimed(tx, item, owner, now) for item in due(tx, now, limit=limit, run=run, reach=reach)]


def due(tx: Tx, now: datetime, *, limit: int, run: str | None, reach: Reach | None) -> list[Item]:
    """The longest due items, locked; none while the city is paused."""
    city = tx.cities.find()
    if city is not None and city.paused_at is not None:
        return []
    return tx.outbox.due(now, limit=limit, run=run, reach=reach)


def claimed(tx: Tx, item: Item, owner: str, now: datetime) -> Item:
    mine = claim(item, owner, now)
    tx.outbox.swap(item, mine, now=now)
    return mine


def next_due_at(tx: Tx, *, reach: Reach | None = None) -> datetime | None:
    return tx.outbox.next_due_at(reach=reach)


def done(tx: Tx, item: Item, now: datetime) -> None:
    """Settle the item in the stage's own transaction. Raises NotClaimed when the claim was taken away meanwhile."""
    before = mine(tx, item)
    tx.outbox.swap(before, settle(before, item.claims), now=now)


def later(tx: Tx, item: Item, until: datetime, now: datetime) -> None:
    """Make the item pending until `until`, without counting an attempt. Raises NotClaimed."""
    before = mine(tx, item)
    tx.outbox.swap(before, put_off(before, item.claims, until), now=now)


def failed(tx: Tx, item: Item, error: str, *, permanent: bool, ids: IdSource, act: Act) -> Item:
    """Make the item pending after a delay, or failed; a failed stage item fails its run too. Raises NotClaimed."""
    before = mine(tx, item)
    after = after_failure(before, item.claims, error, act.at, permanent=permanent)
    return _left(tx, before, after, ids=ids, act=act)


def recover_of(tx: Tx, owner: str, *, ids: IdSource, act: Act) -> int:
    """Make the items that a dead owner had claimed due again, without counting an attempt; returns how many."""
    items = tx.outbox.claimed_by(owner)
    for item in items:
        _left(tx, item, recover(item, act.at), ids=ids, act=act)
    return len(items)


def take_back_hung(tx: Tx, *, ids: IdSource, act: Act) -> int:
    """Void claims older than five minutes, the last resort against workers that hang; returns how many items."""
    items = tx.outbox.hung(act.at - HUNG_AFTER, limit=RECOVER_AT_ONCE)
    for item in items:
        _left(tx, item, take_back(item, act.at), ids=ids, act=act)
    return len(items)


def mine(tx: Tx, item: Item) -> Item:
    """Lock the item and return its current row. Raises NotClaimed when the claim was taken away meanwhile."""
    found = tx.outbox.lock(item.id)
    if found is None:
        raise NotClaimed(item)
    fence(found, item.claims)
    return found


def _left(tx: Tx, before: Item, after: Item, *, ids: IdSource, act: Act) -> Item:
    from lamplighter.services.runs import review

    tx.outbox.swap(before, after, now=act.at)
    run = after.payload.get("run")
    if after.gives_up_run and isinstance(run, str):
        ending = review.Ending(RunState.FAILED, "delivery_failed", Stage.DELIVERY, error=after.last_error)
        review.end_if_active(tx, run, ending, By(Mover.OUTBOX, act.actor), ids=ids, act=act)
    return after
