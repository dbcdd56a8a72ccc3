"""Reading the inbox: what needs a person. It imports little, because `lamp inbox` is used often."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from lamplighter.domain.access import Verb
from lamplighter.domain.inbox.items import URGENT, InboxItem, Kind, Shown, State, fix, how_settled, sentence
from lamplighter.kit.errors import NotFound
from lamplighter.kit.records import changed, record
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read
from lamplighter.services.runs.views import QuestionView
from lamplighter.store.tx import Tx

RUNS_SHOWN = 20
RECENT = 500
"""So many of the newest items are known by the end of their id, as tables show it, and all that are open."""
SHORTEST = 4
SHOWN_OF_ID = 6
"""So many of the last characters of an id, as tables show it."""
MOST_TOLD = 5
ITEM_ID = "The item's id, the beginning or end of it, or the name of what its only open item is about."


@record
class ItemView:
    """An inbox item: one sentence, and the command that would mend it."""

    id: str
    kind: Kind
    subject: str
    sentence: str
    fix: str
    count: int
    first_at: datetime
    last_at: datetime
    state: Shown
    snoozed_until: datetime | None
    seen: bool
    claimed_by: str | None
    runs: Sequence[str] = given("The runs it stands for, the last to end first; at most 20.")
    question: QuestionView | None = given("What the run asks.")
    plan: bool = given("Whether the run's plan waits for approval: approve, amend or reject it.")
    settled_at: datetime | None = given("When it was settled.")
    settled_by: str | None = given("Who settled it.")
    settled_how: str | None = given("How it came to its end.")
    settled_why: str | None = given("What the person said who dismissed it.", default=None)
    snoozed_times: int | None = given("It comes back earlier if it happens so many times more.", default=None)


@record
class ListInbox:
    """What needs a person, the most urgent first; each with one sentence and the command that would mend it."""

    state: Shown = given("Only items in this state.", default=Shown.OPEN)
    kind: Kind | None = given("Only items of this kind.", default=None)
    before: str | None = given(
        "Only items that come after this one: the next page.", default=None, metavar="ID", names="item"
    )
    limit: int = given("At most so many.", default=50, least=1, most=1000)


@record
class ShowItem:
    """One inbox item in full."""

    item: str = given(ITEM_ID, key="item_id", metavar="ITEM", positional=True)


class ItemUnknown(NotFound):
    def __init__(self, item: str) -> None:
        super().__init__(f"There is no inbox item {item}.", hint="`lamp inbox` lists those there are.")


class ItemAmbiguous(NotFound):
    def __init__(self, item: str) -> None:
        super().__init__(f"More than one inbox item begins with {item}.", hint="Write more of the id.")


class SubjectAmbiguous(NotFound):
    def __init__(self, name: str, items: Sequence[InboxItem]) -> None:
        ids = ", ".join(item.id[-SHOWN_OF_ID:] for item in items[:MOST_TOLD])
        more = f" and {len(items) - MOST_TOLD} more" if len(items) > MOST_TOLD else ""
        super().__init__(
            f"{len(items)} open inbox items are about {name}: {ids}{more}.", hint="Write the id of the one you mean."
        )


def list_inbox(tx: Tx, ask: ListInbox, ctx: Context) -> list[ItemView]:
    found: Iterable[InboxItem]
    if ask.state is Shown.SETTLED:
        found = _settled(tx, ask)
    else:
        found = sorted((item for item in every_open(tx) if item.shown(ctx.now) is ask.state), key=_order)
        last = None if ask.before is None else tx.inbox.get(ask.before)
        found = [item for item in found if last is None or _order(item) > _order(last)]
    fitting = (item for item in found if ask.kind in {None, item.kind})
    return views(tx, list(islice(fitting, ask.limit)), ctx)


def _settled(tx: Tx, ask: ListInbox) -> Iterator[InboxItem]:
    """Read page by page: of some kinds there are few."""
    before = ask.before
    while page := tx.inbox.page(state=State.SETTLED, before=before, limit=ask.limit):
        yield from page
        before = page[-1].id


def every_open(tx: Tx) -> list[InboxItem]:
    found: list[InboxItem] = []
    while page := tx.inbox.open_ones(after=found[-1].fingerprint if found else ""):
        found += page
    return found


def _order(item: InboxItem) -> tuple[bool, float, str]:
    return item.kind not in URGENT, -item.last_at.timestamp(), item.id


def show_item(tx: Tx, ask: ShowItem, ctx: Context) -> ItemView:
    """Raises ItemUnknown, ItemAmbiguous."""
    return views(tx, [named(tx, ask.item)], ctx)[0]


def named(tx: Tx, item: str) -> InboxItem:
    """The item with that id, the only one whose id begins or ends so, or the only open one about what is named so.

    Raises ItemUnknown, ItemAmbiguous, SubjectAmbiguous.
    """
    found = tx.inbox.get(item)
    if found is not None:
        return found
    part = item.strip().casefold()
    begun = tx.inbox.named(part if part.startswith("inb_") else f"inb_{part}")
    opened = every_open(tx)
    recent = [*opened, *tx.inbox.page(limit=RECENT)] if len(part) >= SHORTEST else []
    alike = {one.id: one for one in [*begun, *(one for one in recent if one.id.endswith(part))]}
    if len(alike) > 1:
        raise ItemAmbiguous(item)
    if not alike:
        return _about(opened, item)
    return next(iter(alike.values()))


def is_about(item: InboxItem, name: str) -> bool:
    """Whether it is about the automation or agent of that name, with or without its scope."""
    return name in {item.subject, item.subject.partition(":")[0]}


def _about(opened: Sequence[InboxItem], name: str) -> InboxItem:
    """The open item about the automation or agent of that name, with or without its scope."""
    found = [one for one in opened if one.subject == name] or [one for one in opened if is_about(one, name)]
    if len(found) > 1:
        raise SubjectAmbiguous(name, found)
    if not found:
        raise ItemUnknown(name)
    return found[0]


def views(tx: Tx, items: Sequence[InboxItem], ctx: Context) -> list[ItemView]:
    seen = tx.inbox.seen([item.id for item in items], ctx.actor.name) if items else set()
    return [view(tx, item, seen=item.id in seen, now=ctx.now) for item in items]


def view(tx: Tx, item: InboxItem, *, seen: bool, now: datetime) -> ItemView:
    runs: Sequence[str] = [item.last_run] if item.last_run is not None else []
    claimed = item.claimed_by
    if item.of_runs and item.state is State.OPEN:
        item, runs, claimed = _of_its_runs(tx, item)
    asks = item.kind is Kind.NEEDS_HUMAN
    return ItemView(
        id=item.id,
        kind=item.kind,
        subject=item.subject,
        sentence=sentence(item),
        fix=fix(item),
        count=item.count,
        first_at=item.first_at,
        last_at=item.last_at,
        state=item.shown(now),
        snoozed_until=item.snoozed_until,
        seen=seen,
        claimed_by=claimed,
        runs=runs,
        question=_question(item) if asks else None,
        plan=asks and bool(item.facts.get("plan")),
        settled_at=item.settled_at,
        settled_by=item.settled_by,
        settled_how=how_settled(item) or None,
        settled_why=item.settled_why or None,
        snoozed_times=None if item.snoozed_count is None else max(0, item.snoozed_count - item.count),
    )


def _question(item: InboxItem) -> QuestionView:
    told = item.facts
    without = told.get("without_answer")
    return QuestionView(
        str(told.get("question", "")),
        tuple(map(str, told.get("choices", ()))),
        None if without is None else str(without),
    )


def _of_its_runs(tx: Tx, item: InboxItem) -> tuple[InboxItem, list[str], str | None]:
    """The item counted anew, its runs, and who claimed the last of them."""
    until = tx.inbox.settled_until(item.fingerprint)
    after = -1 if until is None else until
    found = tx.runs.folded(item.fingerprint, after=after)
    if found is None:
        return item, [], None
    runs = tx.runs.alike(item.fingerprint, after=after, limit=RUNS_SHOWN)
    facts = item.facts
    if runs and runs[0].id != item.last_run:
        from lamplighter.services.inbox.needs import facts_of  # only where it happened again since it was counted

        facts = facts_of(runs[0])
    counted = changed(
        item, facts=facts, count=found.count, first_at=found.first_at, last_at=found.last_at, last_run=found.last_run
    )  # fmt: skip
    return counted, [run.id for run in runs], runs[0].assigned_to if runs else None


LIST = read("inbox.list", Verb.READ, ListInbox, list[ItemView], list_inbox, http=Http("GET", "/inbox"))
SHOW = read("inbox.show", Verb.READ, ShowItem, ItemView, show_item, http=Http("GET", "/inbox/{item}"))
