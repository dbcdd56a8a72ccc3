"""TOML text to a tree, one clear sentence when it is broken, and the line of any key when somebody asks."""

import codecs
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.adapters.files.layout import layout_of
from lamplighter.domain.city.tree import KeyPath, Problem

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


@dataclass(frozen=True)
class Document:
    """A parsed file; `lines` finds the line of a key."""

    tree: Mapping[str, Any]
    lines: Callable[[KeyPath], int | None]


def load(path: Path, file: str, read: Callable[[Path], bytes] = Path.read_bytes) -> Document | Problem:
    """The file at `path`, named `file` in what is said about it."""
    try:
        text = text_of(read(path))
    except UnicodeDecodeError as error:
        wide = error.object[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
        return Problem(file, "", "is UTF-16 text; save it as UTF-8" if wide else _not_text(error))
    except OSError as error:
        return Problem(file, "", f"cannot be read: {(error.strerror or str(error)).lower()}")
    return parse(text, file)


def text_of(content: bytes) -> str:
    """A byte-order mark, which some editors put in front, is no part of the text. Raises UnicodeDecodeError."""
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")


def parse(text: str, file: str) -> Document | Problem:
    try:
        return Document(tomllib.loads(text), _line_finder(text))
    except RecursionError:
        return Problem(file, "", "is nested too deeply to be read")
    except ValueError as error:
        return _broken(str(error), file)


def _not_text(error: UnicodeDecodeError) -> str:
    return f"is not UTF-8 text; byte {error.start} cannot be read"


def _line_finder(text: str) -> Callable[[KeyPath], int | None]:
    """Scans only when first asked; a key inside an inline table has the line of what holds it."""
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
