"""Remarks on lines of what a run changed, as the one message that its next turn is told."""

from collections.abc import Sequence
from typing import NamedTuple

MOST = 200
LONGEST_PLACE = 300
FIRST = "Remarks on your changes; do what they ask for, each of them."


class Remark(NamedTuple):
    """`line` is the number of a line as the page shows it, or what a person wrote for it; it may be empty."""

    file: str
    line: str
    quoted: str
    text: str


def remarks_of(files: Sequence[str], lines: Sequence[str], quoted: Sequence[str], texts: Sequence[str]) -> list[Remark]:
    """The remarks that were written, from what a form sent under each of four names; boxes left empty say nothing."""
    rows = zip(files, lines, quoted, texts, strict=False)
    found = [Remark(_flat(file), _flat(line), _flat(quote), text.strip()) for file, line, quote, text in rows]
    return [one for one in found if one.text][:MOST]


def message_of(remarks: Sequence[Remark]) -> str:
    """Each with its file, its line, and the line's text where that is known."""
    return "\n\n".join([FIRST, *map(_told, remarks)])


def _told(one: Remark) -> str:
    place = f"{one.file}, line {one.line}" if one.line else one.file
    return "\n".join([f"{place}:", *([f"> {one.quoted}"] if one.quoted else []), one.text])


def _flat(text: str) -> str:
    return " ".join(text.split())[:LONGEST_PLACE]
