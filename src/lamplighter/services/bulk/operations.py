"""Asking for one thing to be done to many runs, following how far it is, and aborting it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.delivery.outbox import ItemKind, new_item
from lamplighter.domain.runs import query
from lamplighter.domain.runs.bulk import (
    EFFECTS,
    FITTING,
    MOST,
    BulkAction,
    BulkOutcome,
    BulkState,
    BulkVerb,
    aborted,
)
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.shapes import given
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import resolving
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Operation, Page, permit, read, transaction
from lamplighter.services.runs.operations import Resolved, resolution
from lamplighter.services.runs.queries import declared_paths
from lamplighter.services.table import find
from lamplighter.store.bulk_actions import TOPIC, BulkItem
from lamplighter.store.tx import Tx

MOST_IN_PARTS = 100
"""So many runs may be named by a part of their id: each is searched for."""
MOST_SEARCHED = 50_000
"""A query with terms that no index serves looks at so many runs."""
BULK_ID = "The bulk action's id or a part of it, or `last`."
RUNS = "The runs, by their ids; none where a query chooses them."
QUERY = "All runs that fit, such as `state:failed automation:nightly* since:2d`; which they are is fixed now."
_RUN = re.compile(r"run_[0-9a-z]{26}")


@dataclass(frozen=True)
class BulkView:
    """One thing done to many runs, and how far it is."""

    id: str
    action: BulkVerb = given("What is done to each run.")
    query: str | None = given("By what the runs were chosen; null if they were named.")
    said: Mapping[str, Any] = given("What is told besides, such as the outcome of `resolve`.")
    state: BulkState = given("Whether it works, is done, or was aborted.")
    total: int = given("How many runs it is about.")
    done: int = given("For how many it is done.")
    refused: int = given("How many refused it; the results say why.")
    left: int = given("How many were not tried yet, or were left alone when it was aborted.")
    creator: str = given("Who asked for it, and by whose right each run is judged.")
    created_at: datetime = given("When it was asked for.")
    ended_at: datetime | None = given("When it was done or aborted.")
    aborted_by: str | None = given("Who aborted it.")


@dataclass(frozen=True)
class BulkResult:
    """What became of one run."""

    number: int = given("Its place in the bulk action, from 0.")
    run: str = given("The run's id.")
    outcome: BulkOutcome = given("Whether it waits, is done, or refused.")
    reason: str | None = given("Why it refused.")
    made: str | None = given("The run that was made, for `retry`.")
    at: datetime | None = given("When that was.")


@dataclass(frozen=True)
class BulkPreview:
    """What a bulk action would do; nothing is done."""

    action: BulkVerb
    effect: str = given("What is done to each run, in a sentence.")
    total: int = given("How many runs it would be about.")
    fitting: int = given("How many of them are in a state that takes it; the others would refuse.")
    states: Mapping[str, int] = given("How many there are in each state.")


@dataclass(frozen=True)
class CreateBulk:
    """Do one thing to many runs: those that are named, or all that fit a query. At most 10,000.

    It is carried out in the background, each run by the ordinary operation and with the rights you have at that moment.
    """

    action: BulkVerb = given("What to do to each run.", positional=True)
    runs: Sequence[str] = given(RUNS, default=(), metavar="RUN...", positional=True)
    query: str | None = given(QUERY, default=None, key="q", metavar="QUERY")
    outcome: Resolved | None = given("For `resolve`: how the runs ended after all.", default=None)
    reason: str = given("For `resolve`: why, in a word or two; at most 500 characters.", default="")
    comment: str = given("For `resolve`: more about it; at most 2000 characters.", default="")


@dataclass(frozen=True)
class PreviewBulk:
    """What a bulk action would do: how many runs it is about, and how many of them can take it. Nothing is done."""

    action: BulkVerb = given("What to do to each run.", positional=True)
    runs: Sequence[str] = given(RUNS, default=(), metavar="RUN...", positional=True)
    query: str | None = given(QUERY, default=None, key="q", metavar="QUERY")


@dataclass(frozen=True)
class ListBulk:
    """Bulk actions, newest first."""

    state: BulkState | None = given("Only in this state.", default=None)
    before: str | None = given("Only older ones than this: the next page.", default=None, metavar="ID", names="bulk")
    limit: int = given("At most so many.", default=50, least=1, most=1000)


@dataclass(frozen=True)
class ShowBulk:
    """A bulk action and how far it is."""

    bulk: str = given(BULK_ID, key="bulk_id", metavar="ID", positional=True, names="bulk")


@dataclass(frozen=True)
class ListResults:
    """What became of each run of a bulk action: done, refused and why, or waiting."""

    bulk: str = given(BULK_ID, key="bulk_id", metavar="ID", positional=True, names="bulk")
    outcome: BulkOutcome | None = given("Only those with this outcome.", default=None)
    after: int | None = given("Only those after this number: the next page.", default=None, metavar="NUMBER")
    limit: int = given("At most so many.", default=100, least=1, most=10_000)


@dataclass(frozen=True)
class AbortBulk:
    """Stop a bulk action: what is done stays done, and the runs that were not tried yet are left alone."""

    bulk: str = given(BULK_ID, key="bulk_id", metavar="ID", positional=True, names="bulk")


class BulkUnknown(NotFound):
    def __init__(self, bulk: str) -> None:
        super().__init__(f"There is no bulk action {bulk}.", hint="`lamp bulk list` shows those there are.")


class TooManyRuns(Conflict):
    def __init__(self, said: str) -> None:
        super().__init__(
            f"{said}; a bulk action is about at most {MOST:,}.",
            hint="Narrow it, such as with `since:`, and do it in several steps. Nothing was done.",
        )


class SearchTooWide(Conflict):
    def __init__(self, searched_to: str) -> None:
        super().__init__(
            f"The query looked at {MOST_SEARCHED:,} runs, back to {searched_to}, and was not through.",
            hint="Narrow it by `state:`, `automation:` or `since:`, which an index serves. Nothing was done.",
        )


class NoRunsChosen(Conflict):
    def __init__(self, query: str) -> None:
        super().__init__(f"No run fits `{query}`.", hint="All runs that are kept were searched. Nothing was done.")


def create(tx: Tx, ask: CreateBulk, ctx: Context) -> BulkView:
    """Raises Forbidden, UsageError, QueryWrong, TooManyRuns, SearchTooWide, NoRunsChosen."""
    permit(tx, operation_of(ask.action).verb, ctx, locks=True)
    said = _said(ask)
    runs = _chosen(tx, ask.runs, ask.query, ctx)
    actor = ctx.actor
    row = BulkAction(
        id=ctx.ids.make("blk"), action=ask.action, said=said, query=(ask.query or "").strip() or None,
        creator=actor.name, role=actor.role, token=actor.token, run_id=actor.run, session=actor.session,
        surface=ctx.surface, state=BulkState.WORKING, total=len(runs), created_at=ctx.now,
    )  # fmt: skip
    tx.bulk_actions.add(row, runs)
    add_part(tx, row.id, 0, ctx)
    payload = {"action": row.action.value, "total": row.total, "query": row.query}
    tx.events.append(ctx.event("bulk.created", subject=row.id, payload=payload))
    tx.wake(TOPIC)
    return view(row)


def preview(tx: Tx, ask: PreviewBulk, ctx: Context) -> BulkPreview:
    """Raises as `create` does for the runs that are chosen."""
    runs = _chosen(tx, ask.runs, ask.query, ctx)
    states = Counter(state for state, _, _ in tx.runs.states(runs).values())
    fitting = sum(count for state, count in states.items() if state in FITTING[ask.action])
    told = {state.value: count for state, count in sorted(states.items())}
    return BulkPreview(ask.action, EFFECTS[ask.action], len(runs), fitting, told)


def list_bulk(tx: Tx, ask: ListBulk, _ctx: Context) -> list[BulkView]:
    return [view(row) for row in tx.bulk_actions.page(state=ask.state, before=ask.before, limit=ask.limit)]


def show(tx: Tx, ask: ShowBulk, _ctx: Context) -> BulkView:
    """Raises BulkUnknown."""
    return view(_found(tx, ask.bulk))


def results(tx: Tx, ask: ListResults, _ctx: Context) -> list[BulkResult]:
    """Raises BulkUnknown."""
    bulk = _found(tx, ask.bulk)
    return [_result(one) for one in tx.bulk_actions.results(
        bulk.id, outcome=ask.outcome, after=ask.after, limit=ask.limit
    )]  # fmt: skip


def abort(tx: Tx, ask: AbortBulk, ctx: Context) -> BulkView:
    """Raises BulkUnknown, NotWorking."""
    bulk = tx.bulk_actions.lock(ask.bulk)
    if bulk is None:
        raise BulkUnknown(ask.bulk)
    after = aborted(bulk, ctx.actor.name, ctx.now)
    tx.bulk_actions.save(after)
    payload = {"action": bulk.action.value, "total": bulk.total, "done": bulk.done, "refused": bulk.refused}
    tx.events.append(ctx.event("bulk.aborted", subject=bulk.id, payload=payload))
    tx.wake(TOPIC)
    return view(after)


def operation_of(action: BulkVerb) -> Operation[Any, Any]:
    """The ordinary operation that is done to each run."""
    return find(f"run.{action.value}")


def add_part(tx: Tx, bulk: str, part: int, ctx: Context) -> None:
    """One part after the other, each adding the next: a large action leaves room for other work."""
    payload = {"bulk": bulk, "part": str(part)}
    tx.outbox.add(new_item(ctx.ids.make("out"), ItemKind.BULK_PART, payload, ctx.now))


def view(row: BulkAction) -> BulkView:
    return BulkView(
        id=row.id, action=row.action, query=row.query, said=row.said, state=row.state, total=row.total, done=row.done,
        refused=row.refused, left=row.total - row.done - row.refused, creator=row.creator, created_at=row.created_at,
        ended_at=row.ended_at, aborted_by=row.aborted_by,
    )  # fmt: skip


def _said(ask: CreateBulk) -> dict[str, Any]:
    """What each operation is told besides its run. Raises UsageError."""
    if ask.action is not BulkVerb.RESOLVE:
        if ask.outcome is not None or ask.reason or ask.comment:
            raise UsageError(
                f"Only `resolve` takes an outcome, a reason and a comment; this is `{ask.action}`.",
                hint="Leave them out. Nothing was done.",
            )
        return {}
    if ask.outcome is None:
        raise UsageError("`resolve` needs an outcome.", hint="Say `succeeded` or `failed`. Nothing was done.")
    resolution(ask.outcome, ask.reason, ask.comment)
    told = {"outcome": ask.outcome.value, "reason": ask.reason, "comment": ask.comment}
    return {key: value for key, value in told.items() if value}


def _chosen(tx: Tx, named: Sequence[str], query: str | None, ctx: Context) -> list[str]:
    """The ids of the runs, each once. Raises UsageError, TooManyRuns and what the query raises."""
    text = (query or "").strip()
    if bool(named) == bool(text):
        raise UsageError(
            "Name runs, or give a query; one of both." if named else "No runs are chosen.",
            hint="An empty query would mean every run, and is refused; `state:failed since:1d` is one.",
        )
    return _searched(tx, text, ctx) if text else _named(tx, named)


def _named(tx: Tx, named: Sequence[str]) -> list[str]:
    given_ids = list(dict.fromkeys(one.strip() for one in named))
    if len(given_ids) > MOST:
        raise TooManyRuns(f"{len(given_ids):,} runs are named")
    in_parts = [one for one in given_ids if not _RUN.fullmatch(one)]
    if len(in_parts) > MOST_IN_PARTS:
        raise UsageError(
            f"`{in_parts[0][:50]}` and {len(in_parts) - 1:,} others are not whole ids of runs.",
            hint=f"Name more than {MOST_IN_PARTS} runs by their whole ids, or by a query.",
        )
    meant = [one if _RUN.fullmatch(one) else resolving.run_id(tx, one) for one in given_ids]
    for typed, one in zip(given_ids, meant, strict=True):
        if not _RUN.fullmatch(one):
            raise RunUnknown(typed[:100])
    return list(dict.fromkeys(meant))


def _searched(tx: Tx, text: str, ctx: Context) -> list[str]:
    paths = declared_paths(tx) if query.PAYLOAD in text else ()
    meant = query.parse(text, ctx.now, paths, ctx.actor.name)
    found, searched_to = tx.runs.search_ids(meant, limit=MOST + 1, most=MOST_SEARCHED)
    if len(found) > MOST:
        raise TooManyRuns(f"More than {MOST:,} runs fit `{text}`")
    if searched_to is not None:
        raise SearchTooWide(searched_to)
    if not found:
        raise NoRunsChosen(text)
    return found


def _found(tx: Tx, bulk: str) -> BulkAction:
    row = tx.bulk_actions.get(bulk)
    if row is None:
        raise BulkUnknown(bulk)
    return row


def _result(one: BulkItem) -> BulkResult:
    return BulkResult(one.number, one.run_id, one.outcome, one.reason or None, one.made, one.at)


CREATE = transaction(
    "bulk.create", Verb.ACT_IN_BULK, CreateBulk, BulkView, create,
    http=Http("POST", "/bulk-actions", status=202, location="/bulk-actions/{id}"),
)  # fmt: skip
PREVIEW = read("bulk.preview", Verb.READ, PreviewBulk, BulkPreview, preview, http=Http("POST", "/bulk-actions/preview"))
LIST = read(
    "bulk.list", Verb.READ, ListBulk, list[BulkView], list_bulk,
    http=Http("GET", "/bulk-actions", page=Page("before", "id")),
)  # fmt: skip
SHOW = read("bulk.show", Verb.READ, ShowBulk, BulkView, show, http=Http("GET", "/bulk-actions/{bulk}"))
RESULTS = read(
    "bulk.results", Verb.READ, ListResults, list[BulkResult], results,
    http=Http("GET", "/bulk-actions/{bulk}/results", page=Page("after", "number")),
)  # fmt: skip
ABORT = transaction(
    "bulk.abort", Verb.ACT_IN_BULK, AbortBulk, BulkView, abort, http=Http("POST", "/bulk-actions/{bulk}/abort")
)
