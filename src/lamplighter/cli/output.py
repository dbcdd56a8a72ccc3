"""What commands print: tables and sentences for people, JSON for programs; colours only on a terminal."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import click

from lamplighter.cli import table as tables
from lamplighter.cli import words
from lamplighter.kit.clock import SystemClock
from lamplighter.kit.durations import coming
from lamplighter.kit.errors import Kind, LampError

EXIT_CODES = {
    Kind.NO: 1,
    Kind.USAGE: 2,
    Kind.NOT_FOUND: 3,
    Kind.CONFLICT: 4,
    Kind.UNAVAILABLE: 5,
    Kind.GONE: 6,
}
LONGEST_NAME = 40
"""Of a name in a sentence."""
STATES = frozenset({"STATE", "STATUS"})
"""Headings of columns that show states, where the column does not say what it shows."""


class Col(NamedTuple):
    """A column of a table: the key of its values, what they are, and how it gives way on a narrow terminal."""

    key: str
    kind: str = "text"
    """`text`, `path` (its end matters most), `state`, `when`, `number`, or `word` (short, never cut)."""
    always: bool = False
    """Shown even if no row has a value for it."""
    spare: int = 0
    """Left out where the terminal is too narrow for all columns, highest first; 0 for one that always stays."""
    wraps: bool = False
    """Broken at words over several lines instead of being cut."""
    below: bool = False
    """Shown on a line of its own below the column that wraps, where one line does not hold all."""


def wants_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get("lamp.json"))


NAMES_CITY = ("city", "url", "context")
"""The options that name the city which a command is about."""


def commands(text: str, named: str | None = None) -> str:
    """`text` with the city as the command line named it in every command it tells, so that each can be typed as it
    stands.

    `named` is the option and its value, where the command has ended and knows them no more.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        meta = context.find_root().meta
        named = next((naming(one, meta[f"lamp.{one}"]) for one in NAMES_CITY if meta.get(f"lamp.{one}")), None)
    if not named:
        return text
    told = _COMMAND if named.startswith("--city") else _COMMAND_ELSEWHERE
    return re.sub(told, lambda _: f"`lamp {named} ", text)


def naming(option: str, value: str) -> str:
    import shlex  # few commands need it

    return f"--{option} {shlex.quote(value)}"


_COMMAND = r"`lamp (?!--|init\b|restore\b)"
_COMMAND_ELSEWHERE = r"`lamp (?!--|(?:init|restore|context|up|start|stop|daemon|worker)\b)"
"""Those that are about this machine cannot be asked of a city on another one."""


def command(text: str) -> str:
    """One command, without backticks, as `commands` gives it."""
    return commands(f"`{text}")[1:]


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence of ours, which may name commands."""
    click.echo(commands(text), err=err)


def marked(mark: str, text: str, *, err: bool = False) -> None:
    """Print a sentence of ours after a mark such as a yellow `note:`, broken at words where the terminal ends."""
    indent = tables.width_of(_COLOUR.sub("", mark)) + 1
    width = terminal_width(err=err)
    body = commands(text) if width is None else tables.paragraphs(commands(text), width, indent=indent)
    click.echo(f"{mark} {body}", err=err)


def record(value: Mapping[str, Any], text: str) -> None:
    """Print one thing: its JSON shape, or the sentence for a person."""
    click.echo(json.dumps(value) if wants_json() else commands(text))


def table(
    values: Sequence[Mapping[str, Any]], columns: Mapping[str, object], *, empty: str, now: datetime | None = None
) -> None:
    """Print many things: a JSON list, or a table of `columns` (heading to key or Col); `empty` if there are none.

    On a terminal every row takes one line that fits it. Times are told relative to now, long ids by their last
    characters, states by a word and a colour; a column that no row has a value for is left out.
    """
    if wants_json():
        click.echo(json.dumps(list(values)))
        return
    if not values:
        if empty:
            text(commands(empty))
        return
    click.echo("\n".join(rendered(values, columns, now=now, width=terminal_width())))


def rendered(
    values: Sequence[Mapping[str, Any]],
    columns: Mapping[str, object],
    *,
    now: datetime | None = None,
    width: int | None = None,
) -> list[str]:
    """The lines of a table, to be printed as they are; `width` is that of the terminal, None for no limit."""
    told = now or SystemClock().now()
    chosen = {heading: _column(heading, one) for heading, one in columns.items()}
    kept = {
        heading: one
        for heading, one in chosen.items()
        if one.always or any(value.get(one.key) not in _NOTHING for value in values)
    }
    short = words.short_ids(
        entry for value in values for one in kept.values() if isinstance(entry := value.get(one.key), str)
    )
    rows = [[_cell(value.get(one.key), one, short, told) for one in kept.values()] for value in values]
    return tables.render([_shape(heading, one) for heading, one in kept.items()], rows, width)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOTHING: tuple[Any, ...] = (None, "", [], {}, ())


def _column(heading: str, one: object) -> Col:
    if isinstance(one, Col):
        return one
    return Col(str(one), "state" if heading in STATES else "text")


def _shape(heading: str, one: Col) -> tables.Column:
    return tables.Column(
        heading,
        fixed=one.kind in {"state", "when", "number", "word"},
        right=one.kind == "number",
        from_start=one.kind == "path",
        spare=one.spare,
        wraps=one.wraps,
        below=one.below,
    )


def _cell(value: Any, one: Col, short: Mapping[str, str], now: datetime) -> tables.Cell:
    if one.kind == "state" and value is not None:
        return tables.Cell(words.plain(words.state(value)), words.colour(value))
    if isinstance(value, str) and value in short:
        return tables.Cell(short[value])
    return tables.Cell(words.shortened(words.words(value, now)))


def terminal_width(*, err: bool = False) -> int | None:
    """The width of the terminal that standard output, or with `err` standard error, is; None if it is none."""
    stream = sys.stderr if err else sys.stdout
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError, AttributeError):
        return None


def fields(value: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Print one thing in detail: its JSON shape, or a line for each entry of `shown` that has a value.

    Nothing is cut; what is longer than the terminal is broken at words.
    """
    if wants_json():
        click.echo(json.dumps(value))
        return
    told = {name: entry for name, entry in shown.items() if entry not in _NOTHING}
    width, size = terminal_width(), max((len(name) for name in told), default=0)
    for name, entry in told.items():
        word, hue, more = entry if isinstance(entry, State) else ("", None, words.words(entry))
        text = tables.paragraphs(f"{word}{more}", width, indent=size + 2)
        text = f"{click.style(word, fg=hue)}{text[len(word) :]}" if word else text
        click.echo(f"{click.style(name.ljust(size), bold=True)}  {text}")


class State(NamedTuple):
    """A state as a detail shows it: the word in its colour, then what more there is to say."""

    word: str
    colour: str | None
    more: str = ""


def state(value: Any, more: str = "") -> State:
    return State(words.plain(words.state(value)), words.colour(value), words.plain(more))


def beside(head: str, body: str) -> None:
    """Print a head, which may have colours of ours in it, and beside it a text that is cut where the terminal ends."""
    width = terminal_width()
    told = body if width is None else tables.cut(body, width - tables.width_of(_COLOUR.sub("", head)))
    click.echo(head + told)


def hanging(head: str, body: str) -> None:
    """Print a head, which may have colours of ours in it, and beside it a text that is broken at words."""
    indent = tables.width_of(_COLOUR.sub("", head))
    click.echo(head + tables.paragraphs(body, terminal_width(), indent=indent))


def line(text: str) -> None:
    """Print one line about what happens, cut where the terminal ends."""
    width = terminal_width()
    told = words.plain(text).replace("\n", " ").rstrip()
    click.echo(told if width is None else tables.cut(told, width))


def text(body: str) -> None:
    """Print a longer text as it is, without control characters, broken where it is wider than the terminal."""
    click.echo(tables.paragraphs(words.plain(body).expandtabs(), terminal_width()))


def sentences(found: Any, _ask: Any) -> None:
    """Print why something is as it is, a line each sentence."""
    text(words.shortened("\n".join(found.sentences)))


def fail(error: LampError, *, as_json: bool, named: str | None = None) -> int:
    """Print the error and what to do next on standard error; returns the exit code. `named` as in `commands`."""
    if as_json:
        problem = {"type": error.kind.value, "title": type(error).__name__, "detail": error.message, "hint": error.hint}
        click.echo(json.dumps(problem), err=True)
    else:
        marked(click.style("error:", fg="red", bold=True), commands(words.shortened(error.message), named), err=True)
        if error.hint:
            marked(click.style(" hint:", fg="cyan"), commands(words.shortened(error.hint), named), err=True)
    return EXIT_CODES[error.kind]


def note(text: str) -> None:
    """Print a note beside the answer on standard error; each text once per command."""
    context = click.get_current_context(silent=True)
    told = context.find_root().meta.setdefault("lamp.notes", set()) if context is not None else set()
    if text not in told:
        told.add(text)
        if wants_json():
            click.echo(json.dumps({"type": "note", "detail": text}), err=True)
        else:
            marked(click.style("note:", fg="yellow"), text, err=True)


def plain(text: str) -> str:
    """`text` without terminal control characters."""
    return words.plain(text)


def local(text: str | None) -> str:
    """An RFC 3339 time in the local time zone, which it names."""
    return local_time(None if text is None else datetime.fromisoformat(text))


def local_time(at: datetime | None) -> str:
    """A time in the local time zone, which it names; empty for None."""
    return words.exact(at)


def soon(firings: Sequence[Mapping[str, Any]], now: datetime) -> str:
    """What fires next and how soon: `heartbeat now · minutely in 37 s`."""
    away = [(one["scoped_name"], datetime.fromisoformat(one["at"]) - now) for one in firings]
    return " · ".join(f"{tables.cut(plain(name), LONGEST_NAME)} {coming(until)}" for name, until in away)
