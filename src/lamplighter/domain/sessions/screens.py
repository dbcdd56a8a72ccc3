"""Reads a program's screen: whether it is ready, which keys answer its dialog, whether text stands in its input."""

import re
import unicodedata
from collections.abc import Iterable

from lamplighter.domain.sessions.model import Dialog, Readiness
from lamplighter.kit.records import record

LINES_READ = 40
_NBSP = "\u00a0"
_POINTERS = "❯›>●▶→*"  # noqa: RUF001  the signs that programs really draw
_BORDERS = "│┃|▌"
_SPACE = re.compile(r"\s+")
_BEGINNING = 24
_TAIL = 12  # so many of the last characters of a text tell whether it is there
_PASTED = re.compile(r"\[pasted?\b[^\]\n]*\]?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def is_ready(screen: str, readiness: Readiness) -> bool:
    """Whether the screen shows that the program is waiting for its first message."""
    text = screen.replace(_NBSP, " ")
    if readiness.mark and readiness.mark in text:
        return True
    prefix = readiness.prompt_prefix.replace(_NBSP, " ").strip()
    return bool(prefix) and any(_bare(line).startswith(prefix) for line in text.rstrip().splitlines()[-LINES_READ:])


def shows(screen: str, prompt: str) -> bool:
    """Whether the screen shows the beginning of the prompt that the program was started with."""
    return _SPACE.sub("", prompt.strip().partition("\n")[0])[:_BEGINNING] in _SPACE.sub("", screen)


def answer(screen: str, dialogs: Iterable[Dialog]) -> tuple[Dialog, tuple[str, ...]] | None:
    """The dialog on the screen with the keys that answer it, or None when none is shown.

    An option is picked by moving to it from the pointer's current position: the preselected option differs between
    versions, and pressing Enter without looking may mean "No, quit". Of several options that fit, the shortest is
    picked: the longer ones also remember the answer, or trust more than was asked for.
    """
    folded = screen.casefold()
    for dialog in dialogs:
        if dialog.mark.casefold() in folded:
            moves = _moves(screen.splitlines(), dialog.choose) if dialog.choose else None
            return dialog, moves or dialog.keys
    return None


@record
class InputRow:
    """A screen with its cursor, which programs keep where their next input goes, even those that do not show it."""

    screen: tuple[str, ...]
    row: int
    column: int
    dead: bool = False  # the program has ended

    @property
    def before_cursor(self) -> str:
        return _cells(self.screen[self.row], self.column) if self.row < len(self.screen) else ""

    @property
    def above(self) -> str:
        return self.screen[self.row - 1] if 0 < self.row <= len(self.screen) else ""


def stands(text: str, row: InputRow) -> bool:
    """Whether the end of `text` stands right before the cursor; its last line may have been broken between two rows."""
    wanted = _SPACE.sub("", text.rstrip().rpartition("\n")[2])
    before = _SPACE.sub("", row.before_cursor)
    if not wanted:
        return False
    if before.endswith(wanted[-_TAIL:]):
        return True
    here = before.strip(_BORDERS + _POINTERS)
    if not here or not wanted.endswith(here):
        return False
    return (_SPACE.sub("", row.above).strip(_BORDERS) + here).endswith(wanted[-_TAIL:])


def pastes_shown(row: InputRow) -> int:
    """How many pasted texts the screen shows by a short mark in their place, as programs do for longer ones."""
    near = row.screen[max(row.row - 2, 0) : row.row + 1]
    return len(_PASTED.findall("\n".join(near)))


def _cells(line: str, column: int) -> str:
    """The part of the line before a column of the terminal; wide characters take two."""
    at = 0
    for index, character in enumerate(line):
        if at >= column:
            return line[:index]
        at += 0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
    return line


def typed(text: str) -> str:
    """`text` as it may be typed: without control characters, which could act as keys or end a bracketed paste."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).rstrip("\n")


def _bare(line: str) -> str:
    return line.strip().lstrip(_BORDERS).strip()


def _moves(lines: list[str], choose: str) -> tuple[str, ...] | None:
    options = [number for number, line in enumerate(lines) if _is_option(line)]
    pointed = [number for number in options if _bare(lines[number])[0] in _POINTERS]
    wanted = [number for number in options if choose.casefold() in lines[number].casefold()]
    if not pointed or not wanted:
        return None
    chosen = min(wanted, key=lambda number: (len(_bare(lines[number]).rstrip(_BORDERS + " ")), -number))
    steps = options.index(chosen) - options.index(pointed[-1])
    return ("Down",) * steps + ("Up",) * -steps + ("Enter",)


def _is_option(line: str) -> bool:
    bare = _bare(line)
    return bool(re.match(rf"[{_POINTERS}]?\s*\d+[.)]\s+\S|[{_POINTERS}]\s+\S", bare))
