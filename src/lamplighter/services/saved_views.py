"""Filters of runs that people keep under a name: their own, and those they share with everybody."""

from dataclasses import dataclass
from datetime import datetime

from lamplighter.domain.access import Verb
from lamplighter.domain.runs import query
from lamplighter.kit.errors import Conflict, NotFound, UsageError
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read, transaction
from lamplighter.store.saved_views import SavedView
from lamplighter.store.tx import Tx

MOST = 20
LONGEST_NAME = 80


@dataclass(frozen=True)
class ViewView:
    """A filter of runs under a name."""

    name: str
    owner: str = given("Who keeps it.")
    query: str = given("What it finds, such as `state:failed since:2d`.")
    shared: bool = given("Whether everybody sees it.")
    saved_at: datetime = given("When it was kept.")
    first: bool = given("Whether its owner sees it first.", default=False)


@dataclass(frozen=True)
class ViewDeleted:
    name: str
    deleted: bool = True


@dataclass(frozen=True)
class ListViews:
    """Kept filters of runs: your own, and those that others share."""


@dataclass(frozen=True)
class SaveView:
    """Keep a filter of runs under a name, in place of your own one of that name."""

    name: str = given("Its name.", positional=True)
    query: str = given("What it finds, such as `state:failed since:2d`.", metavar="QUERY")
    shared: bool = given("Let everybody see it.", default=False)
    first: bool = given("See it first whenever you open the runs; of your views one can be so.", default=False)


@dataclass(frozen=True)
class DeleteView:
    """Forget one of your own kept filters."""

    name: str = given("Its name.", positional=True)


class TooManyViews(Conflict):
    def __init__(self) -> None:
        super().__init__(f"You keep {MOST} views already.", hint="Forget one with `lamp view delete` first.")


def list_views(tx: Tx, _ask: ListViews, ctx: Context) -> list[ViewView]:
    return [_view(row) for row in tx.saved_views.shown_to(ctx.actor.name)]


def save_view(tx: Tx, ask: SaveView, ctx: Context) -> ViewView:
    """Raises UsageError, QueryWrong, TooManyViews."""
    name, text = ask.name.strip(), ask.query.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise UsageError("A view needs a name of at most 80 characters, without a slash.", hint="Nothing was kept.")
    if not text:
        raise UsageError("A view without a filter would show every run.", hint="Filter first, then keep it.")
    query.parse(text, ctx.now)
    if tx.saved_views.others_of(ctx.actor.name, name) >= MOST:
        raise TooManyViews
    row = SavedView(ctx.actor.name, name, text, ask.shared, ctx.now, ask.first)
    tx.saved_views.put(row)
    return _view(row)


def delete_view(tx: Tx, ask: DeleteView, ctx: Context) -> ViewDeleted:
    """Raises NotFound."""
    if not tx.saved_views.delete(ctx.actor.name, ask.name):
        raise NotFound(f"You keep no view `{ask.name}`.", hint="`lamp view list` shows those there are.")
    return ViewDeleted(ask.name)


def _view(row: SavedView) -> ViewView:
    return ViewView(row.name, row.owner, row.query, row.is_shared, row.saved_at, row.is_first)


LIST = read("view.list", Verb.READ, ListViews, list[ViewView], list_views, http=Http("GET", "/views"))
SAVE = transaction("view.save", Verb.SAVE_VIEWS, SaveView, ViewView, save_view, http=Http("POST", "/views", status=201))
DELETE = transaction(
    "view.delete", Verb.SAVE_VIEWS, DeleteView, ViewDeleted, delete_view,
    http=Http("DELETE", "/views/{name}", status=204),
)  # fmt: skip
