"""`lamp worktree`: the working directories of runs."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output
from lamplighter.cli.operations import Subject
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.worktrees import CleanedView, WorktreeView

COLUMNS = {
    "RUN": "run",
    "AUTOMATION": "automation",
    "STATE": "state",
    "BRANCH": "branch",
    "PATH": "path",
    "SIZE": "size",
    "ENDED": "ended",
}


def _list(found: "list[WorktreeView]", _ask: Any) -> None:
    rows = [
        to_json(one)
        | {
            "ended": output.local_time(one.ended_at),
            "size": _megabytes(one.size),
            "state": "waits for an answer" if one.waits else one.state,
        }
        for one in found
    ]
    output.table(rows, COLUMNS, empty="No worktrees.")


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.1f} MB"


def _clean(found: "list[CleanedView]", _ask: Any) -> None:
    if not found:
        click.echo("There is none to remove.")
    for one in found:
        click.echo(f"Removed {one.path}." if one.removed else f"Kept {one.path}: {one.why}.")


worktree = Subject("worktree", "The working directories of runs.", {"list": _list, "clean": _clean})


def command_for(_name: str) -> click.Command:
    return worktree
