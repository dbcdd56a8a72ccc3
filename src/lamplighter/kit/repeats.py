"""Log lines that could come by the thousand: the first at once, the rest of a minute as one line with a count."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lamplighter.kit import log

PERIOD_SECONDS = 60.0
MOST_KINDS = 100

Later = Callable[[float, Callable[[], None]], object]
Kind = tuple[str, tuple[tuple[str, Any], ...]]


def write(event: str, **fields: Any) -> None:
    log.get().warning(event, **fields)


class Repeats:
    """Lines are the same where event and fields are. `later` calls a function after so many seconds."""

    def __init__(self, later: Later, write: Callable[..., None] = write) -> None:
        self._later = later
        self._write = write
        self._counts: dict[Kind, int] = {}

    def tell(self, event: str, **fields: Any) -> None:
        kind = self._kind(event, fields)
        if kind in self._counts:
            self._counts[kind] += 1
            return
        self._counts[kind] = 0
        self._later(PERIOD_SECONDS, partial(self._close, kind))
        self._write(event, **dict(kind[1]))

    def flush(self) -> None:
        """Write what is counted so far: for the end of a process."""
        for kind in list(self._counts):
            self._close(kind)

    def _kind(self, event: str, fields: dict[str, Any]) -> Kind:
        """Where there are very many kinds, fields are left out: then all of one event are one kind."""
        kind = (event, tuple(sorted(fields.items())))
        return kind if kind in self._counts or len(self._counts) < MOST_KINDS else (event, ())

    def _close(self, kind: Kind) -> None:
        again = self._counts.pop(kind, 0)
        if again:
            self._write(kind[0], **dict(kind[1]), again=again, within_s=PERIOD_SECONDS)
