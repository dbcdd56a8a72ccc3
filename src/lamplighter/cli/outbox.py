"""`lamp outbox`: work that waits, is under way or was given up."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.operations import Subject
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.outbox_operations import ListOutbox, OutboxView

COLUMNS = {"ITEM": "id", "KIND": "kind", "STATE": "state", "TRIES": "attempts", "RUN": "run", "ERROR": "last_error"}


def _list(items: "list[OutboxView]", ask: "ListOutbox") -> None:
    empty = "Nothing was given up." if ask.state.value == "failed" else f"Nothing is {ask.state.value}."
    output.table([to_json(item) for item in items], COLUMNS, empty=empty)


def _retried(item: "OutboxView", _ask: Any) -> None:
    click.echo(f"{words.short_id(item.id)} ({item.kind.replace('_', ' ')}) is tried again.")


outbox = Subject("outbox", "Work that waits, is under way or was given up.", {"list": _list, "retry": _retried})


def command_for(_name: str) -> click.Command:
    return outbox
