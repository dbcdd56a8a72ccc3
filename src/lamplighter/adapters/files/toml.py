"""TOML text to a tree, one clear sentence when it is broken, and the line of any key when somebody asks."""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamplighter.domain.city.tree import KeyPath, Problem

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n=.,]"
    r"|[^\[\]{}\n=.,\"'#]+",
    re.DOTALL,
)


@dataclass(frozen=True)
class Document:
    """A parsed file; `lines` finds the line of a key."""

    tree: Mapping[str, Any]
    lines: Callable[[KeyPath], int | None]


def load(path: Path, file: str) -> Document | Problem:
    """The file at `path`, named `file` in what is said about it."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return Problem(file, "", f"is not UTF-8 text; byte {error.start} cannot be read")
    except OSError as error:
        return Problem(file, "", f"cannot be read: {(error.strerror or str(error)).lower()}")
    return parse(text, file)


def parse(text: str, file: str) -> Document | Problem:
    try:
        return Document(tomllib.loads(text), _line_finder(text))
    except RecursionError:
        return Problem(file, "", "is nested too deeply to be read")
    except ValueError as error:
        return _broken(str(error), file)


def line_map(text: str) -> dict[KeyPath, int]:
    """The line on which each table and key of a valid document begins."""
    return _Scan(text).run()


def _line_finder(text: str) -> Callable[[KeyPath], int | None]:
    """Scans only when first asked; a key inside an inline table has the line of what holds it."""
    found: dict[KeyPath, int] = {}

    def line_of(path: KeyPath) -> int | None:
        if not found:
            found.update(line_map(text))
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


class _Scan:
    """One walk over the pieces of a document that is known to be valid."""

    def __init__(self, text: str) -> None:
        self._pieces = [(piece[0], piece.start()) for piece in _PIECE.finditer(text)]
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._next = 0
        self._rows: dict[KeyPath, int] = {}
        self._lines: dict[KeyPath, int] = {}

    def run(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._next < len(self._pieces):
            piece, start = self._pieces[self._next]
            if not piece.strip() or piece.startswith("#"):
                self._next += 1
            elif piece == "[":
                table = self._header(start)
            else:
                self._pair(table, start)
        return self._lines

    def _header(self, start: int) -> KeyPath:
        is_row = self._pieces[self._next + 1][0] == "["
        self._next += 2 if is_row else 1
        steps = self._steps("]")
        self._next += 2 if is_row else 1
        path = self._placed(steps[:-1])
        if is_row:
            path = (*path, steps[-1])
            self._lines.setdefault(path, self._line(start))
            self._rows[path] = self._rows.get(path, -1) + 1
            path = (*path, self._rows[path])
        else:
            path = self._placed(steps)
        self._lines.setdefault(path, self._line(start))
        return path

    def _pair(self, table: KeyPath, start: int) -> None:
        steps = self._steps("=")
        line = self._line(start)
        for length in range(1, len(steps) + 1):
            self._lines.setdefault((*table, *steps[:length]), line)
        depth = 0
        while self._next < len(self._pieces):
            piece = self._pieces[self._next][0]
            self._next += 1
            if piece in "[{":
                depth += 1
            elif piece in "]}":
                depth -= 1
            elif piece == "\n" and depth <= 0:
                return

    def _steps(self, end: str) -> tuple[str, ...]:
        """The parts of a dotted key, up to the piece that ends it."""
        steps: list[str] = []
        while self._next < len(self._pieces) and self._pieces[self._next][0] != end:
            piece = self._pieces[self._next][0].strip()
            if piece and piece != ".":
                steps.append(_unquoted(piece))
            self._next += 1
        return tuple(steps) or ("",)

    def _placed(self, steps: tuple[str, ...]) -> KeyPath:
        """The path of a header: a step that is a list means its last row."""
        path: KeyPath = ()
        for step in steps:
            path = (*path, step)
            if path in self._rows:
                path = (*path, self._rows[path])
        return path

    def _line(self, offset: int) -> int:
        return bisect_right(self._breaks, offset) + 1


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    if piece[0] == '"':
        parsed: str = tomllib.loads(f"k = {piece}")["k"]
        return parsed
    return piece
