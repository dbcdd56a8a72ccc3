"""The outbox as transactions: claim a batch, settle under one's claim, recover what a worker left behind."""

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
    """The longest due items, now this owner's; those another process is claiming are left out. None in a pause."""
    return [claimed(tx, item, owner, now) for item in due(tx, now, limit=limit, run=run, reach=reach)]


def due(tx: Tx, now: datetime, *, limit: int, run: str | None, reach: Reach | None) -> list[Item]:
    """The longest due items, locked; none in a pause."""
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
    """Settle it in the stage's own transaction. Raises NotClaimed when the claim was taken away meanwhile."""
    before = mine(tx, item)
    tx.outbox.swap(before, settle(before, item.claims), now=now)


def later(tx: Tx, item: Item, until: datetime, now: datetime) -> None:
    """Not its time yet: back to pending at no cost. Raises NotClaimed."""
    before = mine(tx, item)
    tx.outbox.swap(before, put_off(before, item.claims, until), now=now)


def failed(tx: Tx, item: Item, error: str, *, permanent: bool, ids: IdSource, act: Act) -> Item:
    """Pending again after a delay, or given up, and then its run with it. Raises NotClaimed."""
    before = mine(tx, item)
    after = after_failure(before, item.claims, error, act.at, permanent=permanent)
    return _left(tx, before, after, ids=ids, act=act)


def recover_of(tx: Tx, owner: str, *, ids: IdSource, act: Act) -> int:
    """The owner is dead: what it had claimed is due again, at no cost in attempts."""
    items = tx.outbox.claimed_by(owner)
    for item in items:
        _left(tx, item, recover(item, act.at), ids=ids, act=act)
    return len(items)


def take_back_hung(tx: Tx, *, ids: IdSource, act: Act) -> int:
    """The last resort for workers that hang: their claims are void after five minutes."""
    items = tx.outbox.hung(act.at - HUNG_AFTER, limit=RECOVER_AT_ONCE)
    for item in items:
        _left(tx, item, take_back(item, act.at), ids=ids, act=act)
    return len(items)


def mine(tx: Tx, item: Item) -> Item:
    """As it stands, locked. Raises NotClaimed when the claim was taken away meanwhile."""
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
