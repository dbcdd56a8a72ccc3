"""`lamp bulk`: one thing done to many runs."""

from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output, words
from lamplighter.cli.base import city, remote
from lamplighter.cli.operations import Subject, do
from lamplighter.cli.output import Col
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.bulk.operations import BulkPreview, BulkResult, BulkView, ListBulk, ListResults

COLUMNS = {
    "ID": Col("id", "word"), "ACTION": Col("action", "word"), "STATE": Col("state", "state"),
    "RUNS": Col("total", "number"), "DONE": Col("done", "number"), "REFUSED": Col("refused", "number"),
    "LEFT": Col("left", "number"), "BY": Col("creator", "word", spare=1), "CHOSEN": Col("query", spare=2),
    "CREATED": Col("created_at", "when"),
}  # fmt: skip
RESULTS = {
    "RUN": Col("run", "word"),
    "OUTCOME": Col("outcome", "state"),
    "NEW RUN": Col("made", "word"),
    "WHY": "reason",
}


def in_bulk(action: str, query: str) -> None:
    """Have it done to all runs that fit the query, and say what was begun."""
    from lamplighter.domain.runs.bulk import BulkVerb
    from lamplighter.services.bulk.operations import CREATE, CreateBulk

    made = do(CREATE, CreateBulk(BulkVerb(action), query=query))
    if output.wants_json():
        output.record(to_json(made), "")
    else:
        _created(made, None)


def _created(made: "BulkView", _ask: Any) -> None:
    short = words.short_id(made.id)
    output.say(f"Bulk action {short}: {made.action} {_runs(made.total)}. `lamp bulk show {short}` says how far it is.")
    if remote() is None and not _daemon_runs():
        output.note("No daemon runs; it begins with the next `lamp up`.")


def _daemon_runs() -> bool:
    from lamplighter.app.inline_run import daemon_runs

    return daemon_runs(city())


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def _list(found: "list[BulkView]", ask: "ListBulk") -> None:
    output.table([to_json(one) for one in found], COLUMNS, empty="No bulk actions.")
    if len(found) == ask.limit:
        click.echo(f"`--before {words.short_id(found[-1].id)}` shows older ones.", err=True)


def _show(one: "BulkView", _ask: Any) -> None:
    output.fields(
        {},
        {
            "Bulk action": one.id,
            "Action": one.action,
            "State": output.state(one.state),
            "Runs": one.total,
            "Done": one.done,
            "Refused": one.refused or None,
            "Left": one.left or None,
            "Chosen by": one.query,
            "Told": ", ".join(f"{key}: {value}" for key, value in one.said.items()) or None,
            "Asked for by": one.creator,
            "Created": one.created_at,
            "Ended": one.ended_at,
            "Aborted by": one.aborted_by,
        },
    )
    if one.refused:
        output.say(f"\n`lamp bulk results {words.short_id(one.id)} --outcome refused` says why.")


def _preview(found: "BulkPreview", _ask: Any) -> None:
    others = found.total - found.fitting
    states = ", ".join(f"{count:,} {words.state(state)}" for state, count in found.states.items())
    refused = f" {_runs(others)} would refuse it." if others else ""
    output.say(f"{_runs(found.total)} ({states}). {found.effect}{refused} Nothing was done.")


def _results(found: "list[BulkResult]", ask: "ListResults") -> None:
    output.table([to_json(one) for one in found], RESULTS, empty="None.")
    if len(found) == ask.limit:
        click.echo(f"`--after {found[-1].number}` shows the next ones.", err=True)


def _aborted(one: "BulkView", _ask: Any) -> None:
    left = f"{_runs(one.left)} {'was' if one.left == 1 else 'were'} left alone"
    output.say(f"Aborted after {_runs(one.done)}; {left}.")


bulk = Subject(
    "bulk",
    "One thing done to many runs.",
    {"create": _created, "preview": _preview, "list": _list, "show": _show, "results": _results, "abort": _aborted},
)


def command_for(_name: str) -> click.Command:
    return bulk
