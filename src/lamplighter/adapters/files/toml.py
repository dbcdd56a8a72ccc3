"""Parses TOML text into a tree that can tell the line of each key, or into a Problem when it is invalid."""

import codecs
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.layout import layout_of
from lamplighter.domain.city.tree import KeyPath, Problem
from lamplighter.kit import toml_text
from lamplighter.kit.records import record

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


@record
class Document:
    """A parsed file; `lines` finds the line of a key."""

    tree: Mapping[str, Any]
    lines: Callable[[KeyPath], int | None]


def load(path: Path, file: str, read: Callable[[Path], bytes] = Path.read_bytes) -> Document | Problem:
    """Read and parse the file at `path`, which a Problem calls `file`."""
    try:
        text = text_of(read(path))
    except UnicodeDecodeError as error:
        wide = error.object[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
        return Problem(file, "", "is UTF-16 text; save it as UTF-8" if wide else _not_text(error))
    except OSError as error:
        return Problem(file, "", f"cannot be read: {(error.strerror or str(error)).lower()}")
    return parse(text, file)


def text_of(content: bytes) -> str:
    """Decode without the byte-order mark that some editors put in front. Raises UnicodeDecodeError."""
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")


def parse(text: str, file: str) -> Document | Problem:
    try:
        return Document(toml_text.parse(text), _line_finder(text))
    except ValueError as error:
        return _broken(str(error), file)


def _not_text(error: UnicodeDecodeError) -> str:
    return f"is not UTF-8 text; byte {error.start} cannot be read"


def _line_finder(text: str) -> Callable[[KeyPath], int | None]:
    """Scans the text at the first call; a key inside an inline table has the line of that table's key."""
    found: dict[KeyPath, int] = {}

    def line_of(path: KeyPath) -> int | None:
        if not found:
            found.update(layout_of(text).lines)
        for length in range(len(path), 0, -1):
            if (line := found.get(path[:length])) is not None:
                return line
        return None

    return line_of


def _broken(message: str, file: str) -> Problem:
    at = _AT.search(message)
    said = _AT.sub("", message)
    said = said[:1].lower() + said[1:]
    if at is None:
        return Problem(file, "", f"is not valid TOML: {said}")
    if at[1] is None:
        return Problem(file, "", f"is not valid TOML: {said} at its end")
    return Problem(file, "", f"is not valid TOML: {said} at column {at[2]}", int(at[1]))
