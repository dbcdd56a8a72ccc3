"""Charts drawn on the server: how the runs of each day ended, as stacked bars with a table behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lamplighter.services.rollups import StripDay

HEIGHT = 72
STEP = 20
WIDTH = 14
ORDER = ("succeeded", "needs_human", "failed", "timed_out", "canceled", "skipped")
"""From the ground up; what another version counts comes on top."""


@dataclass(frozen=True)
class Piece:
    outcome: str
    count: int
    y: float
    height: float


@dataclass(frozen=True)
class Bar:
    day: str
    runs: int
    x: int
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class Chart:
    bars: Sequence[Bar]
    most: int
    outcomes: Sequence[str]
    """Those there are, in their order."""

    @property
    def width(self) -> int:
        return max(1, len(self.bars)) * STEP

    @property
    def marked(self) -> Sequence[Bar]:
        """Those whose day is written below: the first and the last."""
        return self.bars if len(self.bars) <= 1 else (self.bars[0], self.bars[-1])

    @property
    def runs(self) -> int:
        return sum(one.runs for one in self.bars)


def outcomes_of(days: Iterable[StripDay]) -> Chart:
    """A bar for each day; the day with most runs has the whole height, and one run is never invisible."""
    told = list(days)
    most = max((one.runs for one in told), default=0)
    bars = [Bar(one.day, one.runs, at * STEP + (STEP - WIDTH) // 2, _pieces(one, most)) for at, one in enumerate(told)]
    found = {name for one in told for name, count in one.outcomes.items() if count > 0}
    return Chart(bars, most, [one for one in ORDER if one in found] + sorted(found - set(ORDER)))


def _pieces(day: StripDay, most: int) -> list[Piece]:
    names = [one for one in ORDER if one in day.outcomes] + sorted(set(day.outcomes) - set(ORDER))
    pieces, ground = [], float(HEIGHT)
    for name in names:
        count = day.outcomes[name]
        if count <= 0:
            continue
        height = max(1.5, HEIGHT * count / most)
        ground = max(0.0, ground - height)
        pieces.append(Piece(name, count, round(ground, 2), round(height, 2)))
    return pieces
