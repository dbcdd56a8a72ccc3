"""Finds the line and the span of each table and key in a TOML text that is known to be valid."""

import re
import tomllib
from bisect import bisect_right
from dataclasses import field

from lamplighter.domain.city.tree import KeyPath
from lamplighter.kit.records import record

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


@record
class Pair:
    """The offsets of a key and its value: `end` is after the line break, `table` the header above it."""

    table: KeyPath
    start: int
    value_start: int
    value_end: int
    end: int


@record
class Layout:
    lines: dict[KeyPath, int] = field(default_factory=dict)
    pairs: dict[KeyPath, Pair] = field(default_factory=dict)
    headers: dict[KeyPath, int] = field(default_factory=dict)
    """The offset after the line of each header."""
    ends: dict[KeyPath, int] = field(default_factory=dict)
    """The offset after the last pair under each header."""


def layout_of(text: str) -> Layout:
    return _Scan(text).run()


class _Scan:
    """One pass over the tokens of a document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces = [(piece[0], piece.start()) for piece in _PIECE.finditer(text)]
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._next = 0
        self._rows: dict[KeyPath, int] = {}
        self._found = Layout()

    def run(self) -> Layout:
        table: KeyPath = ()
        while self._next < len(self._pieces):
            piece, start = self._pieces[self._next]
            if not piece.strip() or piece.startswith("#"):
                self._next += 1
            elif piece == "[":
                table = self._header(start)
            else:
                self._pair(table, start + len(piece) - len(piece.lstrip()))
        return self._found

    def _header(self, start: int) -> KeyPath:
        is_row = self._pieces[self._next + 1][0] == "["
        self._next += 2 if is_row else 1
        steps = self._steps("]")
        self._next += 2 if is_row else 1
        path = self._placed(steps[:-1])
        if is_row:
            path = (*path, steps[-1])
            self._found.lines.setdefault(path, self._line(start))
            self._rows[path] = self._rows.get(path, -1) + 1
            path = (*path, self._rows[path])
        else:
            path = self._placed(steps)
        self._found.lines.setdefault(path, self._line(start))
        self._found.headers[path] = self._skip_line()
        return path

    def _pair(self, table: KeyPath, start: int) -> None:
        steps = self._steps("=")
        line = self._line(start)
        for length in range(1, len(steps) + 1):
            self._found.lines.setdefault((*table, *steps[:length]), line)
        self._next += 1
        value_start, value_end = self._value()
        end = self._skip_line()
        self._found.pairs[*table, *steps] = Pair(table, start, value_start, value_end, end)
        self._found.ends[table] = end

    def _value(self) -> tuple[int, int]:
        """The span of the value that comes next: up to the comment or line break that follows it."""
        depth, first, last = 0, -1, 0
        while self._next < len(self._pieces):
            piece, start = self._pieces[self._next]
            if depth == 0 and (piece == "\n" or piece.startswith("#")):
                break
            depth += (piece in "[{") - (piece in "]}")
            if piece.strip() and not piece.startswith("#"):
                first = start + len(piece) - len(piece.lstrip()) if first < 0 else first
                last = start + len(piece.rstrip())
            self._next += 1
        return first, last

    def _skip_line(self) -> int:
        """Skip to the next line and return its offset."""
        while self._next < len(self._pieces):
            piece, start = self._pieces[self._next]
            self._next += 1
            if piece == "\n":
                return start + 1
        return len(self._text)

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
        """The path of a header; a step that names a list of tables means its last row."""
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
