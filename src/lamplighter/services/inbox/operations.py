"""What people can do to inbox items. On an item that stands for runs, claim, resolve and retry are done to those."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.inbox.items import LONGEST_SNOOZE, InboxItem, Kind, NotDismissed, NotOpen, OpenAgain, State
from lamplighter.domain.runs.model import Run
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import Conflict, UsageError
from lamplighter.kit.records import changed
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.inbox import needs, settling
from lamplighter.services.inbox.queries import ITEM_ID, RECENT, ItemView, every_open, is_about, named, views
from lamplighter.services.operation import Http, Need, transaction
from lamplighter.services.runs import continuing, people, planning, review
from lamplighter.services.runs.operations import Resolved, resolution
from lamplighter.store.tx import Tx

RUNS_AT_ONCE = 1000
DISMISSED = "dismissed"
LONGEST_REASON = 500
MOST_TIMES = 1000


@dataclass(frozen=True)
class ClaimItem:
    """Take an item into your care, so that others see who looks after it; where it stands for runs, all of them."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


@dataclass(frozen=True)
class UnclaimItem:
    """Let go of an item, whoever claimed it."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


@dataclass(frozen=True)
class ResolveItem:
    """Settle an item as dealt with; where it stands for runs, each of them is resolved."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    outcome: Resolved = given("How its runs ended after all.", default=Resolved.SUCCEEDED)
    reason: str = given("Why, in a word or two.", default="")
    comment: str = given("More about it.", default="")


@dataclass(frozen=True)
class RetryItem:
    """Retry each run that the item stands for."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


@dataclass(frozen=True)
class AnswerItem:
    """Answer what a run asks: another run goes on with its work. The first answer wins."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    text: str = given("What it is told.", positional=True, rest=True)


@dataclass(frozen=True)
class ApproveItem:
    """Approve the plan that an item is about: another run carries it out. The first decision wins."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    text: str = given("What it is told besides.", default="")


@dataclass(frozen=True)
class AmendItem:
    """Have the plan made anew that an item is about, with what you say in mind."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    text: str = given("What is to be different.", positional=True)


@dataclass(frozen=True)
class RejectItem:
    """Reject the plan that an item is about: nothing of it is done."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    reason: str = given("Why.", default="")


@dataclass(frozen=True)
class DismissItem:
    """Settle an item for everybody without doing anything about it; the next of its kind opens a new one."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    reason: str = given("Why, in a word or two.", default="")


@dataclass(frozen=True)
class ReopenItem:
    """Open a dismissed item again, as if nobody had dismissed it."""

    item: str = given(
        "The item's id, the beginning or end of it, or the name of what it is about: the last one dismissed of it.",
        key="item_id", metavar="ITEM", positional=True,
    )  # fmt: skip


@dataclass(frozen=True)
class SnoozeItem:
    """Hide an item from everybody until a time, for a while, or until it happens again; it is counted meanwhile."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)
    until: str | None = given(
        "A duration such as 2h or 3d, or a time such as 2026-11-18T09:00+01:00.", default=None, positional=True
    )
    times: int | None = given(
        "Until it has happened so many times more; 1 is its next failure.", default=None, least=1, most=MOST_TIMES
    )


@dataclass(frozen=True)
class UnsnoozeItem:
    """Show a snoozed item again."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


@dataclass(frozen=True)
class SeeItem:
    """Note that you have seen an item; others see it as new still."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


@dataclass(frozen=True)
class SeeAll:
    """Note that you have seen every open item, or every one about an automation or agent."""

    subject: str | None = given("Only items about this automation or agent.", default=None)


@dataclass(frozen=True)
class SeenAll:
    """How many items were new to you."""

    seen: int


class NotOfRuns(Conflict):
    def __init__(self, item: InboxItem) -> None:
        super().__init__(
            f"Inbox item {item.id} does not stand for runs, so that nothing can be retried.",
            hint=f"`lamp inbox show {item.id}` names the command that would mend it.",
        )


class NoQuestion(Conflict):
    def __init__(self, item: InboxItem) -> None:
        super().__init__(
            f"Inbox item {item.id} is no question of a run.",
            hint=f"`lamp inbox show {item.id}` names the command that would mend it.",
        )


class NoPlan(Conflict):
    def __init__(self, item: InboxItem) -> None:
        super().__init__(
            f"Inbox item {item.id} is no plan that waits for approval.",
            hint=f"`lamp inbox show {item.id}` names the command that would mend it.",
        )


class ClaimedByOther(Conflict):
    def __init__(self, item: InboxItem) -> None:
        super().__init__(
            f"Inbox item {item.id} is claimed by {item.claimed_by}.",
            hint=f"Ask them, or let go of it first: `lamp inbox unclaim {item.id}`.",
        )


def claim_item(tx: Tx, ask: ClaimItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, AlreadyClaimed, ClaimedByOther."""
    item = _open(tx, ask.item)
    if item.of_runs:
        _each(tx, item, lambda run: people.claim(tx, run.id, ctx=ctx))
        return _shown(tx, item, ctx)
    if item.claimed_by not in {None, ctx.actor.name}:
        raise ClaimedByOther(item)
    return _saved(tx, changed(item, claimed_by=ctx.actor.name, claimed_at=ctx.now), "inbox.claimed", ctx)


def unclaim_item(tx: Tx, ask: UnclaimItem, ctx: Context) -> ItemView:
    item = _open(tx, ask.item)
    if item.of_runs:
        _each(tx, item, lambda run: people.unclaim(tx, run.id, ctx=ctx))
        return _shown(tx, item, ctx)
    return _saved(tx, changed(item, claimed_by=None, claimed_at=None), "inbox.unclaimed", ctx)


def resolve_item(tx: Tx, ask: ResolveItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, UsageError. At most RUNS_AT_ONCE runs are resolved; the answer counts those left."""
    said = resolution(ask.outcome, ask.reason, ask.comment)
    item = _open(tx, ask.item)
    if item.of_runs and item.kind is not Kind.SKIPPED:
        _each(tx, item, lambda run: people.resolve(tx, run.id, said, ctx=ctx))
        return _shown(tx, item, ctx)
    return _settled(tx, item, "resolved", "inbox.resolved", ctx)


def retry_item(tx: Tx, ask: RetryItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, NotOfRuns, BudgetUsedUp."""
    item = _open(tx, ask.item)
    if not item.of_runs:
        raise NotOfRuns(item)
    _each(tx, item, lambda run: review.retry_if_left(tx, run.id, ctx=ctx))
    return _shown(tx, item, ctx)


def answer_item(tx: Tx, ask: AnswerItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, NoQuestion, AlreadyAnswered, BudgetUsedUp, UsageError."""
    item = _open(tx, ask.item)
    if item.kind is not Kind.NEEDS_HUMAN:
        raise NoQuestion(item)
    _each(tx, item, lambda run: continuing.answer(tx, run.id, ask.text, ctx=ctx))
    return _shown(tx, item, ctx)


def approve_item(tx: Tx, ask: ApproveItem, ctx: Context) -> ItemView:
    return _decided(tx, ask.item, lambda run: planning.approve(tx, run.id, ask.text, ctx=ctx), ctx)


def amend_item(tx: Tx, ask: AmendItem, ctx: Context) -> ItemView:
    return _decided(tx, ask.item, lambda run: planning.amend(tx, run.id, ask.text, ctx=ctx), ctx)


def reject_item(tx: Tx, ask: RejectItem, ctx: Context) -> ItemView:
    return _decided(tx, ask.item, lambda run: planning.reject(tx, run.id, ask.reason, ctx=ctx), ctx)


def _decided(tx: Tx, name: str, decide: Callable[[Run], object], ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, NoPlan, NoPlanWaits, AlreadyAnswered, BudgetUsedUp, UsageError."""
    item = _open(tx, name)
    if not item.facts.get("plan"):
        raise NoPlan(item)
    _each(tx, item, decide)
    return _shown(tx, item, ctx)


def dismiss_item(tx: Tx, ask: DismissItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, UsageError. The reason stays with the item."""
    why = ask.reason.strip()
    if len(why) > LONGEST_REASON:
        raise UsageError(f"The reason is longer than {LONGEST_REASON} characters.", hint="A word or two are enough.")
    item = changed(_counted(tx, _open(tx, ask.item)), settled_why=why)
    return _settled(tx, item, DISMISSED, "inbox.dismissed", ctx)


def reopen_item(tx: Tx, ask: ReopenItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotDismissed, OpenAgain. Nobody is told of it a second time."""
    found = _dismissed_of(tx, ask.item) or named(tx, ask.item)
    item = tx.inbox.lock(found.id) or found
    if item.state is not State.SETTLED or item.settled_how != DISMISSED:
        raise NotDismissed(item)
    since = tx.inbox.lock_open(item.fingerprint)
    if since is not None:
        raise OpenAgain(item, since)
    told = State.OPEN.value if item.told else ""
    after = changed(
        item, state=State.OPEN, settled_at=None, settled_by=None, settled_how="", settled_why="", told=told
    )  # fmt: skip
    return _saved(tx, after, "inbox.reopened", ctx)


def _dismissed_of(tx: Tx, name: str) -> InboxItem | None:
    """The item that was dismissed last of those about the automation or agent of that name, with or without a scope."""
    settled = tx.inbox.page(state=State.SETTLED, limit=RECENT)
    found = [one for one in settled if one.settled_how == DISMISSED and is_about(one, name)]
    return max(found, key=lambda one: one.settled_at or one.opened_at, default=None)


def snooze_item(tx: Tx, ask: SnoozeItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, NotOpen, UsageError."""
    if ask.until is None and ask.times is None:
        raise UsageError("Nothing says until when.", hint="Write a duration such as `2h`, or `--times 1`.")
    if ask.times is not None and not 1 <= ask.times <= MOST_TIMES:
        raise UsageError(f"That is not a number of times from 1 to {MOST_TIMES}.", hint="1 is its next failure.")
    item = _counted(tx, _open(tx, ask.item))
    until = ctx.now + LONGEST_SNOOZE if ask.until is None else snoozed_until(ask.until, ctx.now)
    recurred = None if ask.times is None else item.count + ask.times
    after = changed(item, snoozed_until=until, snoozed_by=ctx.actor.name, snoozed_count=recurred)
    return _saved(tx, after, "inbox.snoozed", ctx)


def unsnooze_item(tx: Tx, ask: UnsnoozeItem, ctx: Context) -> ItemView:
    item = _open(tx, ask.item)
    after = changed(item, snoozed_until=None, snoozed_by=None, snoozed_count=None)
    return _saved(tx, after, "inbox.unsnoozed", ctx)


def see_item(tx: Tx, ask: SeeItem, ctx: Context) -> ItemView:
    item = named(tx, ask.item)
    tx.inbox.see(item.id, ctx.actor.name, ctx.now)
    return _shown(tx, item, ctx)


def see_all(tx: Tx, ask: SeeAll, ctx: Context) -> SeenAll:
    items = [one.id for one in every_open(tx) if ask.subject in {None, one.subject}]
    new = set(items) - tx.inbox.seen(items, ctx.actor.name) if items else set()
    for item in sorted(new):
        tx.inbox.see(item, ctx.actor.name, ctx.now)
    if new:
        tx.wake(needs.TOPIC)
    return SeenAll(len(new))


def snoozed_until(text: str, now: datetime) -> datetime:
    """The time that a duration from now, or a time with its zone, stands for. Raises UsageError."""
    hint = "Write a duration such as `2h` or `3d`, or a time with its zone such as `2026-11-18T09:00+01:00`."
    try:
        until = now + parse_duration(text)
    except (ValueError, OverflowError):
        try:
            until = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f"`{text}` is neither a duration nor a time.", hint=hint) from None
        if until.tzinfo is None:
            raise UsageError(f"`{text}` names no zone.", hint=hint) from None
    if not now < until <= now + LONGEST_SNOOZE:
        raise UsageError(f"`{text}` is not within the coming year.", hint=hint)
    return until


def _open(tx: Tx, item: str) -> InboxItem:
    """The item, locked. Raises ItemUnknown, ItemAmbiguous, NotOpen."""
    found = named(tx, item)
    locked = tx.inbox.lock(found.id) or found
    if locked.state is not State.OPEN:
        raise NotOpen(locked)
    return locked


def _each(tx: Tx, item: InboxItem, do: Callable[[Run], object]) -> None:
    for run in tx.runs.lock_alike(item.fingerprint, after=settling.covered(tx, item.fingerprint), limit=RUNS_AT_ONCE):
        do(run)


def _counted(tx: Tx, item: InboxItem) -> InboxItem:
    """With the runs it stands for by now: once settled, nothing counts them any more."""
    found = settling.folded(tx, item) if item.of_runs else None
    return item if found is None else settling.refreshed(tx, item, found)


def _settled(tx: Tx, item: InboxItem, how: str, event: str, ctx: Context) -> ItemView:
    after = settling.settle(tx, item, how, ctx=ctx)
    _tell(tx, after, event, ctx)
    return views(tx, [after], ctx)[0]


def _saved(tx: Tx, after: InboxItem, event: str, ctx: Context) -> ItemView:
    tx.inbox.save(after)
    tx.wake(needs.TOPIC)
    _tell(tx, after, event, ctx)
    return views(tx, [after], ctx)[0]


def _tell(tx: Tx, item: InboxItem, event: str, ctx: Context) -> None:
    payload = {
        "item": item.id, "kind": item.kind.value, "snoozed_until": item.snoozed_until, "reason": item.settled_why
    }  # fmt: skip
    told = {key: value.isoformat() if isinstance(value, datetime) else value for key, value in payload.items() if value}
    tx.events.append(ctx.event(event, subject=item.subject, payload=told))


def _shown(tx: Tx, item: InboxItem, ctx: Context) -> ItemView:
    return views(tx, [tx.inbox.get(item.id) or item], ctx)[0]


def _route(verb: str) -> Http:
    return Http("POST", f"/inbox/{{item}}/{verb}")


CLAIM = transaction(
    "inbox.claim", Verb.CLAIM_RUN, ClaimItem, ItemView, claim_item, http=_route("claim"), repeatable=True
)
UNCLAIM = transaction(
    "inbox.unclaim", Verb.CLAIM_RUN, UnclaimItem, ItemView, unclaim_item, http=_route("unclaim"), repeatable=True
)
RESOLVE = transaction("inbox.resolve", Verb.RESOLVE_RUN, ResolveItem, ItemView, resolve_item, http=_route("resolve"))
RETRY = transaction(
    "inbox.retry", Verb.RETRY_RUN, RetryItem, ItemView, retry_item, needs=Need.CONFIG, http=_route("retry")
)
ANSWER = transaction(
    "inbox.answer", Verb.ANSWER_RUN, AnswerItem, ItemView, answer_item, needs=Need.CONFIG, http=_route("answer")
)
APPROVE = transaction(
    "inbox.approve", Verb.ANSWER_RUN, ApproveItem, ItemView, approve_item, needs=Need.CONFIG, http=_route("approve")
)
AMEND = transaction(
    "inbox.amend", Verb.ANSWER_RUN, AmendItem, ItemView, amend_item, needs=Need.CONFIG, http=_route("amend")
)
REJECT = transaction("inbox.reject", Verb.ANSWER_RUN, RejectItem, ItemView, reject_item, http=_route("reject"))
DISMISS = transaction("inbox.dismiss", Verb.DISMISS_ITEM, DismissItem, ItemView, dismiss_item, http=_route("dismiss"))
REOPEN = transaction("inbox.reopen", Verb.DISMISS_ITEM, ReopenItem, ItemView, reopen_item, http=_route("reopen"))
SNOOZE = transaction(
    "inbox.snooze", Verb.SNOOZE_ITEM, SnoozeItem, ItemView, snooze_item, http=_route("snooze"), repeatable=True
)
UNSNOOZE = transaction(
    "inbox.unsnooze", Verb.SNOOZE_ITEM, UnsnoozeItem, ItemView, unsnooze_item, http=_route("unsnooze"), repeatable=True
)
SEE = transaction("inbox.see", Verb.READ, SeeItem, ItemView, see_item, http=_route("see"), repeatable=True)
SEE_ALL = transaction(
    "inbox.see-all", Verb.READ, SeeAll, SeenAll, see_all, http=Http("POST", "/inbox/see-all"), repeatable=True
)
