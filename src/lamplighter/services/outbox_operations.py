"""The outbox in sight: what waits, what is under way, what was given up; and trying given up work again."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.delivery.outbox import Item, ItemState, malformed, try_again
from lamplighter.kit.errors import Conflict, NotFound
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class OutboxView:
    """A durable instruction to do the next thing."""

    id: str
    kind: str
    state: ItemState
    run: str | None
    due_at: datetime
    attempts: int
    recoveries: int
    claimed_by: str | None
    last_error: str | None
    settled_at: datetime | None


@dataclass(frozen=True)
class ListOutbox:
    """Outbox items, newest first: what was given up, or what is in another state."""

    state: ItemState = given("Only items in this state.", default=ItemState.FAILED)
    before: str | None = given(
        "Only items older than this one: the next page.", default=None, metavar="ID", names="outbox"
    )
    limit: int = given("At most so many.", default=50, least=1, most=1000)


@dataclass(frozen=True)
class RetryOutbox:
    """Try an outbox item again that was given up, from its first attempt on."""

    item: str = given("The item's id, or a part of it.", key="item_id", metavar="ID", positional=True, names="outbox")


class OutboxItemUnknown(NotFound):
    def __init__(self, item: str) -> None:
        super().__init__(f"There is no outbox item {item}.", hint="`lamp outbox list` shows those there are.")


class CannotRetry(Conflict):
    def __init__(self, item: Item, why: str, hint: str) -> None:
        super().__init__(f"Outbox item {item.id} ({item.kind}) cannot be tried again: {why}.", hint=hint)


def list_outbox(tx: Tx, ask: ListOutbox, _ctx: Context) -> list[OutboxView]:
    return [_view(one.item, one.settled_at) for one in tx.outbox.page(ask.state, before=ask.before, limit=ask.limit)]


def retry_outbox(tx: Tx, ask: RetryOutbox, ctx: Context) -> OutboxView:
    """Raises OutboxItemUnknown, CannotRetry."""
    item = tx.outbox.lock(ask.item)
    if item is None:
        raise OutboxItemUnknown(ask.item)
    if item.state is not ItemState.FAILED:
        raise CannotRetry(item, f"it is {item.state}", "Only what was given up is tried again.")
    if told := malformed(item.kind, item.payload):
        raise CannotRetry(item, told, "No attempt could succeed; it is deleted with the next retention.")
    if item.gives_up_run:
        run = item.payload["run"]
        raise CannotRetry(item, "its run has ended with it", f"Start the run anew: `lamp run retry {run}`.")
    after = try_again(item, ctx.now)
    tx.outbox.swap(item, after, now=ctx.now)
    tx.events.append(ctx.event("delivery.retried", subject=item.kind, payload={"item": item.id}))
    return _view(after, None)


def _view(item: Item, settled_at: datetime | None) -> OutboxView:
    run = item.payload.get("run")
    settled = settled_at if item.state in {ItemState.DONE, ItemState.FAILED} else None
    return OutboxView(
        item.id, item.kind, item.state, run if isinstance(run, str) else None, item.due_at, item.attempts,
        item.recoveries, item.claimed_by, item.last_error or None, settled,
    )  # fmt: skip


LIST = read("outbox.list", Verb.READ, ListOutbox, list[OutboxView], list_outbox, http=Http("GET", "/outbox"))
RETRY = transaction(
    "outbox.retry", Verb.RETRY_OUTBOX, RetryOutbox, OutboxView, retry_outbox, http=Http("POST", "/outbox/{item}/retry")
)
