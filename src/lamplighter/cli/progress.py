"""Progress of long work: one line that is written over on a terminal, and nothing elsewhere."""

import shutil
import sys
from types import TracebackType
from typing import Self

from lamplighter.cli.output import wants_json


class ProgressLine:
    """`with ProgressLine() as line: line("copying runs: 2000 of 9000")`; the line is gone at the end."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty() and not wants_json()
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, text: str) -> None:
        if self._shows:
            shown = text[: max(shutil.get_terminal_size().columns - 1, 20)]
            sys.stderr.write(f"\r{shown.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(shown)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
