"""Log lines that may repeat by the thousand: the first is written at once, a minute's repeats as one with a count."""

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
    """Two lines are the same if event and fields are. `later` calls a function after a number of seconds."""

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
        """Write all counts so far: for the end of a process."""
        for kind in list(self._counts):
            self._close(kind)

    def _kind(self, event: str, fields: dict[str, Any]) -> Kind:
        """The event with its fields; with MOST_KINDS already counted, a new kind is the event alone."""
        kind = (event, tuple(sorted(fields.items())))
        return kind if kind in self._counts or len(self._counts) < MOST_KINDS else (event, ())

    def _close(self, kind: Kind) -> None:
        again = self._counts.pop(kind, 0)
        if again:
            self._write(kind[0], **dict(kind[1]), again=again, within_s=PERIOD_SECONDS)
