"""Chooses where a process of the city logs: standard error, rotated if that is the log file of a background daemon."""

import re
import shutil
import sys
from typing import TextIO, cast

from lamplighter.adapters.files.log_file import LogFile, open_log, same_file
from lamplighter.app.settings import Settings
from lamplighter.app.wiring import locate

STANDARD = (1, 2)
MARKS = ("[warning", "[error", "[critical")
TOLD = ("] agent.", "] control.refused")
"""What happens to agents is told by the view itself; a request that is refused, to whoever asked."""
_LINE = re.compile(r"\S+\s+\[\w+\s*\]\s*(?P<what>.*)")


def log_beside_a_view(settings: Settings) -> TextIO:
    """The city's log file, for a process whose terminal shows what happens; warnings and errors appear there too,
    in one line each.
    """
    path = locate(settings).log
    return cast("TextIO", _Beside(LogFile(path, (open_log(path),))))


class _Beside:
    def __init__(self, file: LogFile) -> None:
        self._file = file

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        if any(mark in text for mark in MARKS) and not any(mark in text for mark in TOLD):
            sys.stderr.write(f"{calm(text, shutil.get_terminal_size().columns)}\n")
        return self._file.write(text)

    def flush(self) -> None:
        self._file.flush()
        sys.stderr.flush()


def calm(text: str, width: int) -> str:
    """A line of the log as the view shows it: `! store.slow: error=… (lamp daemon logs)`, no wider than `width`."""
    first = text.strip().split("\n", 1)[0]
    found = _LINE.match(first)
    told = " ".join((found["what"] if found else first).split())
    more = " (lamp daemon logs)"
    room = max(width - len("! ") - len(more), 20)
    return f"! {told if len(told) <= room else told[: room - 1] + '…'}{more}"


def log_stream(settings: Settings) -> TextIO:
    """A rotating log if standard error is the city's own log file, else standard error."""
    path = locate(settings).log
    descriptors = tuple(one for one in STANDARD if same_file(one, path))
    return cast("TextIO", LogFile(path, descriptors)) if 2 in descriptors else sys.stderr
