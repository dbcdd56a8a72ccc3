"""Working off a bulk action: one transaction for each run, with the operation, its result and the count together.

A worker that dies has therefore done a run wholly or not at all, and whoever goes on begins with the next one.
"""

from lamplighter.domain.access import Actor
from lamplighter.domain.delivery.outbox import Item
from lamplighter.domain.runs import bulk as rules
from lamplighter.domain.runs.bulk import BulkAction, BulkOutcome, BulkState
from lamplighter.kit.records import changed
from lamplighter.services import outbox
from lamplighter.services.bulk.operations import add_part, operation_of
from lamplighter.services.context import Context
from lamplighter.services.operation import judged
from lamplighter.services.token_checks import holder
from lamplighter.store.bulk_actions import TOPIC, BulkItem
from lamplighter.store.tx import Tx

LONGEST_REASON = 1000


def waiting(tx: Tx, item: Item) -> list[int]:
    """The numbers of the runs of the item's part that were not tried yet; none if it was aborted or is gone."""
    bulk = tx.bulk_actions.get(item.payload["bulk"])
    if bulk is None or bulk.state is not BulkState.WORKING:
        return []
    found = tx.bulk_actions.waiting(bulk.id, rules.part_of(_part(item)), limit=rules.PART)
    return [one.number for one in found]


def carry_out(tx: Tx, item: Item, number: int, *, ctx: Context) -> bool:
    """Do it to one run, under the creator's right as it is now; False if the action was aborted meanwhile.

    May be repeated. Raises NotClaimed, and what refuses it: Forbidden, TokenVoid, and what the operation raises.
    """
    bulk = _locked(tx, item)
    if bulk is None:
        return False
    one = _still_waits(tx, bulk, number)
    if one is None:
        return True
    operation = operation_of(bulk.action)
    mine = changed(ctx, actor=_creator(tx, bulk, ctx), surface=bulk.surface, bulk=bulk.id)
    answer = judged(tx, operation, operation.asked({"run_id": one.run_id, **bulk.said}), mine)
    made = answer.id if answer.id != one.run_id else None
    _settle(tx, bulk, changed(one, outcome=BulkOutcome.DONE, made=made, at=ctx.now))
    return True


def refuse(tx: Tx, item: Item, number: int, reason: str, *, ctx: Context) -> None:
    """Keep why it was not done to one run. Raises NotClaimed."""
    bulk = _locked(tx, item)
    one = None if bulk is None else _still_waits(tx, bulk, number)
    if bulk is not None and one is not None:
        told = changed(one, outcome=BulkOutcome.REFUSED, reason=reason[:LONGEST_REASON], at=ctx.now)
        _settle(tx, bulk, told)


def finish(tx: Tx, item: Item, *, ctx: Context) -> None:
    """Settle the part, and begin the next one or end the action. Raises NotClaimed."""
    bulk = _locked(tx, item)
    if bulk is not None and not rules.is_last(bulk, _part(item)):
        add_part(tx, bulk.id, _part(item) + 1, ctx)
    elif bulk is not None:
        after = rules.ended(bulk, ctx.now)
        tx.bulk_actions.save(after)
        payload = {"action": bulk.action.value, "total": bulk.total, "done": bulk.done, "refused": bulk.refused}
        tx.events.append(ctx.event("bulk.ended", subject=bulk.id, payload=payload))
        tx.wake(TOPIC)
    outbox.done(tx, item, ctx.now)


def _locked(tx: Tx, item: Item) -> BulkAction | None:
    """The action, if it is to go on: locked, so that nothing more is done once it is aborted. Raises NotClaimed."""
    bulk = tx.bulk_actions.lock(item.payload["bulk"])
    outbox.mine(tx, item)
    return bulk if bulk is not None and bulk.state is BulkState.WORKING else None


def _still_waits(tx: Tx, bulk: BulkAction, number: int) -> BulkItem | None:
    found = tx.bulk_actions.waiting(bulk.id, range(number, number + 1), limit=1)
    return found[0] if found else None


def _settle(tx: Tx, bulk: BulkAction, one: BulkItem) -> None:
    tx.bulk_actions.settle(bulk.id, one)
    tx.bulk_actions.save(rules.counted(bulk, one.outcome))
    tx.wake(TOPIC)


def _creator(tx: Tx, bulk: BulkAction, ctx: Context) -> Actor:
    """Who asked for it, with the rights they have now. Raises TokenVoid."""
    if bulk.token is None:
        return Actor(bulk.creator, bulk.role, bulk.run_id, bulk.session)
    actor, _ = holder(tx, bulk.token, ctx.now)
    return changed(actor, run=bulk.run_id, session=bulk.session)


def _part(item: Item) -> int:
    return int(item.payload["part"])
