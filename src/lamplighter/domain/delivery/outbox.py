"""Outbox items: durable instructions for the next step of work, and their states after failures and lost workers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lamplighter.kit.backoff import doubling
from lamplighter.kit.errors import Conflict
from lamplighter.kit.records import record

MOST_ATTEMPTS = 5
MOST_RECOVERIES = 20
FIRST_DELAY = timedelta(seconds=30)
LONGEST_DELAY = timedelta(minutes=5)
HUNG_AFTER = timedelta(minutes=5)
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=30)


class ItemKind(StrEnum):
    PROCESS_DELIVERY = "process_delivery"
    ENQUEUE_ENRICH = "enqueue_enrich"
    ENQUEUE_EXECUTE = "enqueue_execute"
    COOK = "cook"
    STOP_SESSION = "stop_session"
    WRITE_ARTIFACT = "write_artifact"
    NOTIFY_RUN_TERMINAL = "notify_run_terminal"
    NOTIFY_SESSION_COMPLETE = "notify_session_complete"
    NOTIFY_AUTOMATION = "notify_automation"
    SEND_NOTICE = "send_notice"
    BULK_PART = "bulk_part"
    SLACK_CALL = "slack_call"
    SLACK_PRESS = "slack_press"
    SLACK_FOLLOW = "slack_follow"
    SLACK_OPEN = "slack_open"


STAGES = frozenset({ItemKind.ENQUEUE_ENRICH, ItemKind.ENQUEUE_EXECUTE, ItemKind.COOK})
"""The kinds whose handling may hold the lease of their run."""
BEGIN_WORK = STAGES | {ItemKind.PROCESS_DELIVERY, ItemKind.BULK_PART}
"""The kinds that begin work, as retrying many runs does: they wait while the city is paused. What ends, stops, tells
or records goes on."""
REQUIRED: Mapping[ItemKind, tuple[str, ...]] = {
    ItemKind.PROCESS_DELIVERY: (),
    ItemKind.ENQUEUE_ENRICH: ("run",),
    ItemKind.ENQUEUE_EXECUTE: ("run",),
    ItemKind.COOK: ("run",),
    ItemKind.STOP_SESSION: ("session",),
    ItemKind.WRITE_ARTIFACT: ("run", "artifact"),
    ItemKind.NOTIFY_RUN_TERMINAL: ("run",),
    ItemKind.NOTIFY_SESSION_COMPLETE: ("session",),
    ItemKind.NOTIFY_AUTOMATION: ("automation", "notice"),
    ItemKind.SEND_NOTICE: ("notice",),
    ItemKind.BULK_PART: ("bulk", "part"),
    ItemKind.SLACK_CALL: ("team", "method"),
    ItemKind.SLACK_PRESS: ("team", "person"),
    ItemKind.SLACK_FOLLOW: ("thread",),
    ItemKind.SLACK_OPEN: ("run", "to"),
}
_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
_A_DAY = (5 * _SECOND, 30 * _SECOND, _MINUTE, 2 * _MINUTE, *(288 * (5 * _MINUTE,)))
DELAYS: Mapping[str, tuple[timedelta, ...]] = {
    ItemKind.SEND_NOTICE.value: (
        5 * _SECOND, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 20 * _HOUR,
    ),
    ItemKind.SLACK_CALL.value: _A_DAY,
    ItemKind.SLACK_FOLLOW.value: _A_DAY,
    ItemKind.SLACK_OPEN.value: _A_DAY,
}  # fmt: skip
"""The delays after failed attempts of kinds that have a schedule of their own: notices are tried ten times over three
days, what is said in Slack for a day. The others are tried MOST_ATTEMPTS times."""


class ItemState(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"


SETTLED = frozenset({ItemState.DONE, ItemState.FAILED})


@record
class Item:
    """`kind` is the stored text, so that an unknown kind can fail visibly. `claims` counts claims and is the fence: a
    worker whose claim number is not the current one cannot settle the item.
    """

    id: str
    kind: str
    payload: Mapping[str, Any]
    due_at: datetime
    state: ItemState = ItemState.PENDING
    attempts: int = 0
    recoveries: int = 0
    claims: int = 0
    claimed_by: str | None = None
    claimed_at: datetime | None = None
    last_error: str = ""

    @property
    def gives_up_run(self) -> bool:
        """Whether its failure must fail its run in the same transaction, because nothing else would move the run."""
        stages = {ItemKind.ENQUEUE_ENRICH, ItemKind.ENQUEUE_EXECUTE, ItemKind.COOK}
        return self.state is ItemState.FAILED and self.kind in stages


class NotClaimed(Conflict):
    """The claim was revoked or the item is settled; the worker's result must be dropped."""

    def __init__(self, item: Item) -> None:
        super().__init__(f"Outbox item {item.id} is {item.state} and not this worker's.", hint="Drop the result.")


def malformed(kind: str, payload: Mapping[str, Any]) -> str:
    """Why no attempt can ever succeed; empty for a valid item."""
    if kind not in REQUIRED:
        return f"`{kind}` is not a kind of outbox item"
    if kind == ItemKind.PROCESS_DELIVERY and not _names_deliveries(payload):
        return f"{kind} needs `deliveries`"
    missing = [key for key in REQUIRED[ItemKind(kind)] if not isinstance(payload.get(key), str) or not payload[key]]
    return f"{kind} needs `{'`, `'.join(missing)}`" if missing else ""


def _names_deliveries(payload: Mapping[str, Any]) -> bool:
    """One in `delivery`, as of what was gathered, or several in `deliveries`."""
    several = payload.get("deliveries", [payload.get("delivery")])
    return isinstance(several, list) and bool(several) and all(isinstance(one, str) and one for one in several)


def claim(item: Item, worker: str, now: datetime) -> Item:
    """Claim the item for a worker. Raises NotClaimed unless the item is pending and due."""
    if item.state is not ItemState.PENDING or item.due_at > now:
        raise NotClaimed(item)
    return replace(item, state=ItemState.CLAIMED, claims=item.claims + 1, claimed_by=worker, claimed_at=now)


def settle(item: Item, claim_number: int) -> Item:
    """Mark the item done. Raises NotClaimed when the worker no longer holds the claim."""
    fence(item, claim_number)
    return replace(item, state=ItemState.DONE, attempts=item.attempts + 1, claimed_by=None, claimed_at=None)


def after_failure(item: Item, claim_number: int, error: str, now: datetime, *, permanent: bool = False) -> Item:
    """Pending again after a growing delay; failed at the fifth attempt, or at once for a permanent error.

    Raises NotClaimed when the worker no longer holds the claim.
    """
    fence(item, claim_number)
    return _failed_once(item, error, now, permanent=permanent)


def put_off(item: Item, claim_number: int, until: datetime, *, afresh: bool = False) -> Item:
    """Pending again until `until`, without counting an attempt: its run's lease is still live, or its node is away.

    Afresh, it has done a part of its work, and what failed before that counts no more. Raises NotClaimed when the
    worker no longer holds the claim.
    """
    fence(item, claim_number)
    attempts = 0 if afresh else item.attempts
    return replace(item, state=ItemState.PENDING, due_at=until, claimed_by=None, claimed_at=None, attempts=attempts)


def recover(item: Item, now: datetime) -> Item:
    """Release the claim of a worker that is proven dead: due at once, without counting an attempt.

    After MOST_RECOVERIES dead workers the item fails. An item that is not claimed is returned unchanged.
    """
    if item.state is not ItemState.CLAIMED:
        return item
    recoveries = item.recoveries + 1
    given_up = recoveries >= MOST_RECOVERIES
    return replace(
        item,
        state=ItemState.FAILED if given_up else ItemState.PENDING,
        recoveries=recoveries,
        due_at=now,
        claimed_by=None,
        claimed_at=None,
        last_error=f"{recoveries} times a worker died on it or lost the database" if given_up else item.last_error,
    )


def hand_back(item: Item, now: datetime) -> Item:
    """Release a claim that its worker does not work on, because an answer of the database was lost.

    Counts as a recovery, not as an attempt. It is due after a short pause that grows with the recoveries, so that an
    item which itself breaks the connection is not tried without end.
    """
    after = recover(item, now)
    if after is item or after.state is ItemState.FAILED:
        return after
    return replace(after, due_at=now + doubling(item.recoveries, first=FIRST_PAUSE, most=LONGEST_PAUSE))


def try_again(item: Item, now: datetime) -> Item:
    """Pending from its first attempt on: a person wants an item tried again that was given up."""
    return replace(item, state=ItemState.PENDING, attempts=0, recoveries=0, due_at=now)


def take_back(item: Item, now: datetime) -> Item:
    """Revoke the claim of a hung worker after five minutes, as a last resort: due at once, and counts as an attempt."""
    if not hung(item, now):
        return item
    return replace(_failed_once(item, f"{item.claimed_by} did not answer", now, permanent=False), due_at=now)


def hung(item: Item, now: datetime) -> bool:
    return item.state is ItemState.CLAIMED and item.claimed_at is not None and now - item.claimed_at > HUNG_AFTER


def _failed_once(item: Item, error: str, now: datetime, *, permanent: bool) -> Item:
    attempts = item.attempts + 1
    delays = DELAYS.get(item.kind)
    given_up = permanent or attempts >= (MOST_ATTEMPTS if delays is None else len(delays) + 1)
    delay = timedelta(0) if given_up else _delay(item.attempts, delays)
    return replace(
        item,
        state=ItemState.FAILED if given_up else ItemState.PENDING,
        attempts=attempts,
        due_at=item.due_at if given_up else now + delay,
        claimed_by=None,
        claimed_at=None,
        last_error=error,
    )


def _delay(attempts: int, delays: tuple[timedelta, ...] | None) -> timedelta:
    return doubling(attempts, first=FIRST_DELAY, most=LONGEST_DELAY) if delays is None else delays[attempts]


def fence(item: Item, claim_number: int) -> None:
    """Raises NotClaimed unless `claim_number` is the current claim."""
    if item.state is not ItemState.CLAIMED or item.claims != claim_number:
        raise NotClaimed(item)


def new_item(item_id: str, kind: ItemKind, payload: Mapping[str, Any], now: datetime) -> Item:
    """A pending item, due now. Raises ValueError for a payload that does not fit its kind: a bug of the caller."""
    if told := malformed(kind, payload):
        raise ValueError(told)
    return Item(item_id, kind.value, payload, now)
