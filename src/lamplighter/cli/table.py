"""Tables and paragraphs for a terminal: columns and rows become lines that fit its width, each row on one line.

A cell that is too long is cut with an ellipsis; one of a column that wraps is broken at words over several lines
instead, and what a column `below` holds comes after it on lines of its own. Widths are those of a terminal: a Chinese
character takes two columns, a combining accent none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import click

GAP = "  "
ELLIPSIS = "…"
NARROWEST = 8


class Column(NamedTuple):
    """How a column behaves where the terminal is narrow."""

    heading: str
    fixed: bool = False
    """Never cut: an id, a time, a number."""
    right: bool = False
    from_start: bool = False
    """The end of it matters more than the beginning, as of a path."""
    spare: int = 0
    """Left out, highest first, where even cutting does not make the table fit; 0 for a column that always stays."""
    wraps: bool = False
    """Never cut: broken at words over several lines."""
    below: bool = False
    """Where the rows do not fit one line each: shown under the column that wraps, after its heading."""


class Cell(NamedTuple):
    text: str
    colour: str | None = None


def render(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> list[str]:
    """The lines of a table, its headings first; none is wider than `width`. No width: nothing is cut."""
    cells = [[Cell(one_line(cell.text), cell.colour) for cell in row] for row in rows]
    natural = [
        max([width_of(column.heading), *(width_of(row[n].text) for row in cells)]) for n, column in enumerate(columns)
    ]
    under = [n for n, column in enumerate(columns) if column.below]
    if width is None or _total(natural) <= width:
        under = []
    shown, widths = _fitted(columns, natural, width, [n for n in range(len(columns)) if n not in under])
    heads = [Cell(columns[n].heading) for n in shown]
    kept = [columns[n] for n in shown]
    lines = [click.style(_line(heads, kept, widths), bold=True)] if any(column.heading for column in kept) else []
    for row in cells:
        more = [f"{columns[n].heading.capitalize()}: {row[n].text}" for n in under if row[n].text]
        lines += _lines([row[n] for n in shown], kept, widths, more)
    return lines


def _fitted(
    columns: Sequence[Column], natural: list[int], width: int | None, shown: list[int]
) -> tuple[list[int], list[int]]:
    """Which of the columns `shown` are shown indeed, and how wide each is."""
    while width is not None and _total([_floor(columns[n], natural[n]) for n in shown]) > width:
        spare = [n for n in shown if columns[n].spare]
        if not spare:
            break
        shown.remove(max(spare, key=lambda n: (columns[n].spare, n)))
    widths = [natural[n] for n in shown]
    if width is None or _total(widths) <= width:
        return shown, widths
    floors = [_floor(columns[n], natural[n]) for n in shown]
    if _total(floors) > width:  # a very narrow terminal: every column gives way, the widest first
        floors = [1] * len(shown)
    return shown, _shrunk(widths, floors, width)


def _shrunk(widths: list[int], floors: list[int], width: int) -> list[int]:
    """Take from the widest column that may still give, one character at a time, until all fit."""
    widths = list(widths)
    while _total(widths) > width:
        giving = [n for n in range(len(widths)) if widths[n] > floors[n]]
        if not giving:
            break
        widest = max(giving, key=lambda n: widths[n])
        others = [widths[n] for n in giving if n != widest]
        step = max(1, min(widths[widest] - max([floors[widest], *others]), _total(widths) - width))
        widths[widest] -= step
    return widths


def _floor(column: Column, natural: int) -> int:
    return natural if column.fixed else min(natural, max(NARROWEST, width_of(column.heading)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _lines(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int], below: Sequence[str]) -> list[str]:
    """The lines of one row: more than one where a column wraps or something is to be told below it."""
    broken = [
        _broken(cell.text, width) if column.wraps else [cell.text]
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    wrapping = next((n for n, column in enumerate(columns) if column.wraps), len(columns) - 1)
    broken[wrapping] += [part for text in below for part in _broken(text, widths[wrapping])]
    return [
        _line([Cell(parts[n] if n < len(parts) else "", cell.colour if n < len(parts) else None)
               for cell, parts in zip(cells, broken, strict=True)], columns, widths)
        for n in range(max(map(len, broken)))
    ]  # fmt: skip


def _line(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for n, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        text = cut(cell.text, width, from_start=column.from_start)
        space = " " * (width - width_of(text))
        last = n == len(cells) - 1 and not column.right
        styled = text if cell.colour is None else click.style(text, fg=cell.colour)
        parts.append(f"{space}{styled}" if column.right else styled if last else f"{styled}{space}")
    return GAP.join(parts).rstrip()


def paragraphs(text: str, width: int | None, *, indent: int = 0) -> str:
    """`text` broken at words so that its lines fit `width` after `indent`; all lines but the first are indented."""
    lines = text.split("\n")
    if width is not None and width - indent >= NARROWEST:
        lines = [part for line in lines for part in _broken(line, width - indent)]
    return f"\n{' ' * indent}".join(lines)


def _broken(line: str, width: int) -> list[str]:
    found, rest = [], line
    while width_of(rest) > width:
        end = _fitting(rest, width)
        space = rest.rfind(" ", 1, end + 1)
        at = space if space > 0 and rest[:space].strip() else end
        found.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return [*found, rest]


def _fitting(text: str, width: int) -> int:
    """How many characters of the text fit `width`, an accent with its letter."""
    for number, character in enumerate(text):
        width -= _width(character)
        if width < 0:
            return number
    return len(text)


def one_line(text: str) -> str:
    return " ".join(text.split()) if any(mark in text for mark in "\n\t\r") else text


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def cut(text: str, width: int, *, from_start: bool = False) -> str:
    """The text, or what of it fits `width` with an ellipsis for the rest."""
    if width_of(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, left = [], width - 1
    for character in reversed(text) if from_start else text:
        size = _width(character)
        if size > left:
            break
        kept.append(character)
        left -= size
    if from_start:
        kept.reverse()
        while kept and not _width(kept[0]):  # an accent whose letter was cut off
            kept.pop(0)
        return ELLIPSIS + "".join(kept)
    return "".join(kept) + ELLIPSIS


def _width(character: str) -> int:
    if character < "\u0300":
        return 1
    import unicodedata  # few texts need it

    if character == "\ufe0f":  # asks for the wide form of the sign before it
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
