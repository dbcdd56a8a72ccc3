"""Charts drawn on the server, each with its numbers in words or in a table: how runs ended, and how long they took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from lamplighter.services.rollups import CostLine, StripDay
from lamplighter.services.runs.views import RunView

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


@dataclass(frozen=True)
class Spent:
    day: str
    cost: float
    x: int
    height: float


def costs_of(lines: Iterable[CostLine]) -> Sequence[Spent]:
    """A bar for each day; the dearest has the whole height, and a day that cost anything is never invisible."""
    told = list(lines)
    most = max((one.cost for one in told), default=0.0) or 1.0
    return [
        Spent(one.key, one.cost, at * STEP + (STEP - WIDTH) // 2,
              round(max(1.5, HEIGHT * one.cost / most), 2) if one.cost > 0 else 0.0)
        for at, one in enumerate(told)
    ]  # fmt: skip


WRONG = frozenset({"failed", "timed_out"})
SPARK_HEIGHT = 22
SPARK_STEP = 7


@dataclass(frozen=True)
class Spark:
    """A day of a strip: `bad` stands on the ground from below, so that it is told from the good by its place too."""

    day: str
    runs: int
    bad: int
    x: int
    good_height: float
    bad_height: float

    @property
    def top(self) -> float:
        return SPARK_HEIGHT - self.good_height - self.bad_height


@dataclass(frozen=True)
class Strip:
    days: Sequence[Spark]

    @property
    def width(self) -> int:
        return max(1, len(self.days)) * SPARK_STEP

    @property
    def paths(self) -> list[tuple[str, str]]:
        """One path for each look, because a list has many strips."""
        good = "".join(f"M{day.x} {day.top:g}h5v{day.good_height:g}h-5z" for day in self.days if day.good_height)
        bad = "".join(f"M{day.x} 22v-{day.bad_height:g}h5v{day.bad_height:g}z" for day in self.days if day.bad_height)
        none = "".join(f"M{day.x} 22v-1.5h5v1.5z" for day in self.days if not day.runs)
        return [(look, path) for look, path in (("good", good), ("bad", bad), ("none", none)) if path]

    @property
    def words(self) -> str:
        runs, bad = sum(one.runs for one in self.days), sum(one.bad for one in self.days)
        return f"{runs} runs in {len(self.days)} days, {bad} of them failed" if runs else "no run"


def strip_of(days: Iterable[StripDay]) -> Strip:
    """A day with runs is never lower than half: it shows that there were some, and which part of them went wrong."""
    told = list(days)
    most = max((one.runs for one in told), default=0)
    return Strip([_spark(one, at, most) for at, one in enumerate(told)])


def _spark(day: StripDay, at: int, most: int) -> Spark:
    bad = sum(count for name, count in day.outcomes.items() if name in WRONG)
    if day.runs <= 0:
        return Spark(day.day, 0, 0, at * SPARK_STEP, 0, 0)
    whole = SPARK_HEIGHT * (0.5 + 0.5 * day.runs / most)
    wrong = max(4.0, whole * bad / day.runs) if bad else 0.0
    return Spark(
        day.day, day.runs, bad, at * SPARK_STEP, round(whole - min(whole, wrong), 1), round(min(whole, wrong), 1)
    )


TOOK_HEIGHT = 60
LEAST_TAKEN = 30
"""The chart has room for so many runs, so that few of them are not drawn as walls."""


@dataclass(frozen=True)
class Taken:
    """A run in the chart of durations."""

    run: str
    state: str
    seconds: float
    x: int
    height: float


@dataclass(frozen=True)
class Times:
    """How long the last runs took, oldest first, and how long they waited for their start."""

    runs: Sequence[Taken]
    median: float
    slow: float
    """19 of 20 took no longer."""
    waited: float
    waited_slow: float

    @property
    def width(self) -> int:
        return max(LEAST_TAKEN, len(self.runs)) * 6


def times_of(runs: Iterable[RunView]) -> Times | None:
    """None where no run has ended that was started."""
    told = [(one, one.duration_s.total_seconds()) for one in runs if one.duration_s is not None and one.started_at]
    if not told:
        return None
    told.sort(key=lambda pair: pair[0].id)
    took = [seconds for _, seconds in told]
    waited = [max(0.0, (one.started_at - one.created_at).total_seconds()) for one, _ in told if one.started_at]
    most = max(took) or 1.0
    bars = [
        Taken(one.id, one.state.value, seconds, at * 6, round(max(1.5, TOOK_HEIGHT * seconds / most), 1))
        for at, (one, seconds) in enumerate(told)
    ]
    return Times(bars, share_of(took, 0.5), share_of(took, 0.95), share_of(waited, 0.5), share_of(waited, 0.95))


def share_of(values: Iterable[float], share: float) -> float:
    """The least value that so great a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
