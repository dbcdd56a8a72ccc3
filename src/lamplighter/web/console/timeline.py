"""The stages of a run as bars: when it waited, when it was prepared, when it ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamplighter.services.runs.views import RunEventView

_WORDS = {"queued": "waited", "enriching": "prepared", "ready": "waited for a place", "running": "ran"}
WIDTH = 1000
LEAST = 4
"""A bar is at least so wide, of WIDTH, so that a short stage can be seen."""


@dataclass(frozen=True)
class Stage:
    state: str
    word: str
    began: datetime
    lasted: timedelta
    x: int
    width: int
    going: bool


def stages_of(events: Sequence[RunEventView], created: datetime, ended: datetime | None, now: datetime) -> list[Stage]:
    """The stages in their order. None lasts less than nothing, whatever the clocks of several machines said."""
    moves = [(one.at, one.to_state) for one in events if one.to_state]
    if not moves:
        return []
    end = max(ended or now, created)
    total = max((end - created).total_seconds(), 0.001)
    made: list[Stage] = []
    at = created
    for number, (began, state) in enumerate(moves):
        at = min(max(at, began), end)
        until = min(max(at, moves[number + 1][0]), end) if number + 1 < len(moves) else end
        if state not in _WORDS:
            continue
        if made and moves[number - 1][1] == state:  # the same again: one stage, from the beginning of the first
            at = made.pop().began
        x = int((at - created).total_seconds() / total * WIDTH)
        width = max(LEAST, int((until - at).total_seconds() / total * WIDTH))
        x = min(x, WIDTH - width) if width <= WIDTH else 0
        going = ended is None and number + 1 == len(moves)
        made.append(Stage(state, _WORDS[state], at, until - at, max(0, x), min(width, WIDTH), going))
        at = until
    return made
