"""`lamp view`: kept filters of runs; and `lamp find`."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Subject, command_of
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json
from lamplighter.services.table import find

if TYPE_CHECKING:
    from lamplighter.services.finding import FindThings, FoundView
    from lamplighter.services.saved_views import ViewDeleted, ViewView

VIEWS = {"NAME": "name", "OWNER": "owner", "SHARED": "shared", "QUERY": "query", "KEPT": Col("saved_at", "when")}
FOUND = {"KIND": "kind", "NAME": "name", "WHAT": "detail"}


def _list(found: "list[ViewView]", _ask: Any) -> None:
    empty = "No views. `lamp view save NAME --query 'state:failed since:2d'` keeps one."
    output.table([to_json(one) for one in found], VIEWS, empty=empty)


def _saved(one: "ViewView", _ask: Any) -> None:
    told = [*(["everybody sees it"] if one.shared else []), *(["you see it first"] if one.first else [])]
    click.echo(output.plain(f"Kept {one.name}: {one.query}{f' ({words.listed(told)})' if told else ''}."))


def _deleted(gone: "ViewDeleted", _ask: Any) -> None:
    click.echo(output.plain(f"Forgot {gone.name}."))


def _found(found: "list[FoundView]", ask: "FindThings") -> None:
    output.table([to_json(one) for one in found], FOUND, empty=f"Nothing has `{ask.text}` in its name.")


def command_for(name: str) -> click.Command:
    if name == "find":
        return command_of(find("city.find"), _found)
    return Subject("view", "Kept filters of runs.", {"list": _list, "save": _saved, "delete": _deleted})
