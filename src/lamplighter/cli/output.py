"""What commands print: tables and sentences for people, JSON for programs; colours only on a terminal."""

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from lamplighter.kit.durations import format_duration
from lamplighter.kit.errors import Kind, LampError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
EXIT_CODES = {
    Kind.NO: 1,
    Kind.USAGE: 2,
    Kind.NOT_FOUND: 3,
    Kind.CONFLICT: 4,
    Kind.UNAVAILABLE: 5,
    Kind.GONE: 6,
}
_STATE_COLOURS = {
    "starting": "yellow", "draining": "yellow", "crashed": "red", "quarantined": "red", "suspended": "bright_black",
    "closed": "bright_black", "in_progress": "yellow", "open": "green", "running": "green", "stopped": "bright_black",
}  # fmt: skip


def wants_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get("lamp.json"))


def record(value: Mapping[str, Any], text: str) -> None:
    """Print one thing: its JSON shape, or the sentence for a person."""
    click.echo(json.dumps(value) if wants_json() else text)


def table(values: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, empty: str) -> None:
    """Print many things: a JSON list, or a table of `columns` (heading to key); `empty` if there are none."""
    if wants_json():
        click.echo(json.dumps(list(values)))
        return
    if not values:
        click.echo(empty)
        return
    cells = [[_cell(value.get(key)) for key in columns.values()] for value in values]
    widths = [max(len(row[n]) for row in [list(columns), *cells]) for n in range(len(columns))]
    click.echo(click.style(_line(list(columns), widths), bold=True))
    for row in cells:
        click.echo(_coloured(row, widths))


def fields(value: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Print one thing in detail: its JSON shape, or a line for each entry of `shown` that has a value."""
    if wants_json():
        click.echo(json.dumps(value))
        return
    width = max((len(name) for name in shown), default=0)
    for name, entry in shown.items():
        if entry not in (None, "", [], {}, ()):
            click.echo(f"{click.style(name.ljust(width), bold=True)}  {_cell(entry)}")


def fail(error: LampError, *, as_json: bool) -> int:
    """Print the error and what to do next on standard error; returns the exit code."""
    if as_json:
        problem = {"type": error.kind.value, "title": type(error).__name__, "detail": error.message, "hint": error.hint}
        click.echo(json.dumps(problem), err=True)
    else:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {error.message}", err=True)
        if error.hint:
            click.echo(f"{click.style(' hint:', fg='cyan')} {error.hint}", err=True)
    return EXIT_CODES[error.kind]


def note(text: str) -> None:
    """Print a note beside the answer, in one line on standard error; each text once per command."""
    context = click.get_current_context(silent=True)
    told = context.find_root().meta.setdefault("lamp.notes", set()) if context is not None else set()
    if text not in told:
        told.add(text)
        mark = click.style("note:", fg="yellow")
        click.echo(json.dumps({"type": "note", "detail": text}) if wants_json() else f"{mark} {text}", err=True)


def local(text: str | None) -> str:
    """An RFC 3339 time in the local time zone."""
    return "" if text is None else datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def soon(firings: Sequence[Mapping[str, Any]], now: datetime) -> str:
    """What fires next and how soon: `heartbeat now · minutely in 37s`."""
    away = [(one["scoped_name"], datetime.fromisoformat(one["at"]) - now) for one in firings]
    return " · ".join(f"{plain(name)} {_in(left)}" for name, left in away)


def _in(left: timedelta) -> str:
    seconds = math.ceil(left.total_seconds())
    return f"in {format_duration(timedelta(seconds=seconds))}" if seconds > 0 else "now"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(entry) for entry in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={entry}" for key, entry in value.items())
    text = plain(str(value))
    return " ".join(text.split()) if len(text) < 200 else text


def plain(text: str) -> str:
    """`text` without terminal control characters: the writer of an event must not control the reader's terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _coloured(cells: Sequence[str], widths: Sequence[int]) -> str:
    line = _line(cells, widths)
    if not sys.stdout.isatty():
        return line
    parts = [
        click.style(cell.ljust(width), fg=_STATE_COLOURS.get(cell)) for cell, width in zip(cells, widths, strict=True)
    ]
    return "  ".join(parts).rstrip()
