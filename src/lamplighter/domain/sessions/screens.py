"""Reads a program's screen: whether it is ready, whether it shows a dialog, and which keys answer it."""

import re
from collections.abc import Iterable

from lamplighter.domain.sessions.model import Dialog, Readiness

LINES_READ = 40
_NBSP = "\u00a0"
_POINTERS = "❯›>●▶→*"  # noqa: RUF001  the signs that programs really draw
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def is_ready(screen: str, readiness: Readiness) -> bool:
    """Whether the screen shows that the program is waiting for its first message."""
    text = screen.replace(_NBSP, " ")
    if readiness.mark and readiness.mark in text:
        return True
    prefix = readiness.prompt_prefix.replace(_NBSP, " ").strip()
    return bool(prefix) and any(_bare(line).startswith(prefix) for line in text.rstrip().splitlines()[-LINES_READ:])


def answer(screen: str, dialogs: Iterable[Dialog]) -> tuple[Dialog, tuple[str, ...]] | None:
    """The dialog on the screen with the keys that answer it, or None when none is shown.

    An option is picked by moving to it from the pointer's current position: the preselected option differs between
    versions, and pressing Enter without looking may mean "No, quit".
    """
    folded = screen.casefold()
    for dialog in dialogs:
        if dialog.mark.casefold() in folded:
            moves = _moves(screen.splitlines(), dialog.choose) if dialog.choose else None
            return dialog, moves or dialog.keys
    return None


def typed(text: str) -> str:
    """`text` as it may be typed: without control characters, which could act as keys or end a bracketed paste."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).rstrip("\n")


def _bare(line: str) -> str:
    return line.strip().lstrip("│┃|").strip()


def _moves(lines: list[str], choose: str) -> tuple[str, ...] | None:
    options = [number for number, line in enumerate(lines) if _is_option(line)]
    pointed = [number for number in options if _bare(lines[number])[0] in _POINTERS]
    wanted = [number for number in options if choose.casefold() in lines[number].casefold()]
    if not pointed or not wanted:
        return None
    steps = options.index(wanted[-1]) - options.index(pointed[-1])
    return ("Down",) * steps + ("Up",) * -steps + ("Enter",)


def _is_option(line: str) -> bool:
    bare = _bare(line)
    return bool(re.match(rf"[{_POINTERS}]?\s*\d+[.)]\s+\S|[{_POINTERS}]\s+\S", bare))
