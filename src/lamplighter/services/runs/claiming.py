"""What a process takes from the outbox in one transaction, with all that needs nothing but the database."""

from collections.abc import Sequence

from lamplighter.domain.delivery.outbox import Item, ItemKind, claim, malformed, settle
from lamplighter.domain.delivery.reach import Reach
from lamplighter.kit.records import changed
from lamplighter.services import outbox
from lamplighter.services.context import Context
from lamplighter.services.runs import enriching
from lamplighter.services.runs.starting import Taken, take
from lamplighter.services.runs.workers import Worker
from lamplighter.store.tx import Tx


def take_due(  # noqa: PLR0913  what a process may take
    tx: Tx,
    worker: Worker,
    *,
    limit: int,
    ctx: Context,
    run: str | None = None,
    reach: Reach | None = None,
    bounded: bool = False,
    released: frozenset[str] = frozenset(),
) -> Taken:
    """Claim the longest due items. In the same transaction the commands among them are started, runs that wait for it
    are enriched, which gives further claimed items, and sessions that were `released` need no stop any more.

    Where limits keep commands waiting, too (`bounded`), each is started by itself.
    """
    due = outbox.due(tx, ctx.now, limit=limit, run=run, reach=reach)
    over = [item for item in due if _is_over(item, worker, released)]
    for item in over:
        mine = claim(item, worker.owner, ctx.now)
        tx.outbox.swap(item, settle(mine, mine.claims), now=ctx.now)
    made = enriching.enrich_some(tx, [item for item in due if _waits(item)], worker, reach=reach, ctx=ctx)
    taken = take(tx, _rest(due, over, made.left), worker, ctx.now, reach=reach, bounded=bounded)
    return changed(taken, items=[*taken.items, *made.follows], enriched=made.count, over=len(over))


def _rest(due: Sequence[Item], over: Sequence[Item], left: Sequence[Item]) -> list[Item]:
    gone, kept = {item.id for item in over}, {item.id for item in left}
    return [item for item in due if item.id not in gone and (not _waits(item) or item.id in kept)]


def _waits(item: Item) -> bool:
    return item.kind == ItemKind.ENQUEUE_ENRICH and not malformed(item.kind, item.payload)


def _is_over(item: Item, worker: Worker, released: frozenset[str]) -> bool:
    """Whether this process has already stopped the session and freed what belonged to it; with `kept`, a decision has
    come since, and what was kept for it is to be freed too.
    """
    if item.kind != ItemKind.STOP_SESSION or item.payload.get("kept"):
        return False
    return item.payload.get("node") in {None, worker.node} and item.payload.get("session") in released
