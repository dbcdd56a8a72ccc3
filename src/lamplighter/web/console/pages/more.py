"""The other pages: calendar, events, beads, nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Self
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from lamplighter.domain.beads.model import BOOKKEEPING, BeadStatus
from lamplighter.kit.errors import LampError, UsageError
from lamplighter.services.automations.queries import SIMULATE, Simulate
from lamplighter.services.automations.views import FiringView
from lamplighter.services.beads.queries import LIST as LIST_BEADS
from lamplighter.services.beads.queries import SHOW as SHOW_BEAD
from lamplighter.services.beads.queries import ListBeads, ShowBead
from lamplighter.services.beads.views import BeadView
from lamplighter.services.event_operations import LIST as LIST_EVENTS
from lamplighter.services.event_operations import ListEvents
from lamplighter.services.node_views import LIST as LIST_NODES
from lamplighter.services.node_views import ListNodes
from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.services.runs.views import RunView
from lamplighter.web.console.visit import ZONE_COOKIE, Answer, Visit, together

DAYS = 7
YEARS = range(1970, 2100)
"""The calendar shows weeks of these."""
MOST_FIRINGS = 5000
OF_EACH = 100
"""So many times of an automation are worked out; one that fires more often in the week goes on in the same way."""
MOST_RUNS = 500
OF_A_DAY = 25
"""So many automations are named on a day; the others are counted."""
BEFORE_FOLDED = 6
"""Of an automation that fires more often than this in a day one line is shown."""
EVENTS = 100
BEADS = 200


@dataclass(frozen=True)
class Entry:
    """An automation on a day: the runs there were and the firings to come, each in order."""

    automation: str
    runs: Sequence[RunView]
    firings: Sequence[FiringView]
    goes_on: bool = False
    """It fires on, and how often on this day is not worked out."""
    every: timedelta | None = None
    """The time between its firings, where that is always the same."""

    @property
    def at(self) -> datetime:
        """Those whose times are not worked out come last."""
        firsts = [*(run.created_at for run in self.runs[:1]), *(one.at for one in self.firings[:1])]
        return min(firsts) if firsts else datetime.max.replace(tzinfo=UTC)

    @property
    def folded(self) -> bool:
        return self.goes_on or len(self.runs) + len(self.firings) > BEFORE_FOLDED


@dataclass(frozen=True)
class Day:
    day: date
    entries: Sequence[Entry]
    others: int = 0
    """Automations of the day that are not named."""
    load: Sequence[int] = ()
    """How many runs and firings each hour of the day has."""
    shifts: Sequence[str] = ()
    """Where clocks are put forward or back on this day, in words."""


def week_of(first: date, runs: Sequence[RunView], firings: Sequence[FiringView], zone: tzinfo = UTC) -> list[Day]:
    """Days of the zone, each with its entries by time."""
    days = []
    dense = {name: at.astimezone(zone).date() for name, at in _cut_short(firings).items()}
    paces = {name: pace for name in dense if (pace := _pace([one.at for one in firings if one.scoped_name == name]))}
    for number in range(DAYS):
        day = first + timedelta(days=number)
        names: dict[str, tuple[list[RunView], list[FiringView]]] = {}
        for run in sorted(runs, key=lambda one: one.created_at):
            if run.created_at.astimezone(zone).date() == day:
                names.setdefault(run.automation, ([], []))[0].append(run)
        for firing in firings:
            if firing.at.astimezone(zone).date() == day:
                names.setdefault(firing.scoped_name, ([], []))[1].append(firing)
        on = {name for name, last in dense.items() if day >= last}
        for name in sorted(on):
            names.setdefault(name, ([], []))
        made = (Entry(name, *found, goes_on=name in on, every=paces.get(name)) for name, found in names.items())
        entries = sorted(made, key=lambda one: one.at)
        load = [0] * 24
        for at in (*(run.created_at for one in entries for run in one.runs),
                   *(fires.at for one in entries for fires in one.firings)):  # fmt: skip
            load[at.astimezone(zone).hour] += 1
        zones = {*(one.zone for one in firings), *([zone.key] if isinstance(zone, ZoneInfo) else [])}
        days.append(Day(day, entries[:OF_A_DAY], max(0, len(entries) - OF_A_DAY), load, _shifts(day, zones)))
    return days


def _shifts(day: date, zones: Iterable[str]) -> list[str]:
    """The zones whose clocks are changed on the day: times that are skipped or come twice."""
    found = []
    for name in sorted(zones):
        try:
            zone = ZoneInfo(name)
        except (KeyError, ValueError):
            continue
        begins, ends = (datetime(one.year, one.month, one.day, tzinfo=zone) for one in (day, day + timedelta(days=1)))
        moved = (ends.utcoffset() or timedelta()) - (begins.utcoffset() or timedelta())
        if moved:
            hours = abs(moved) / timedelta(hours=1)
            found.append(f"clocks go {'forward' if moved > timedelta() else 'back'} {hours:g} h in {name}")
    return found


def zone_of(request: Request) -> tzinfo:
    """The zone of whoever looks, as the script of the page says it; UTC without script."""
    name = unquote(request.cookies.get(ZONE_COOKIE, ""))
    try:
        return ZoneInfo(name) if name and len(name) < 64 else UTC
    except (KeyError, ValueError, OSError):
        return UTC


def _cut_short(firings: Sequence[FiringView]) -> dict[str, datetime]:
    """The automations of which not all times are worked out, with the last that is."""
    last: dict[str, datetime] = {}
    count: dict[str, int] = {}
    for one in firings:
        last[one.scoped_name] = one.at
        count[one.scoped_name] = count.get(one.scoped_name, 0) + 1
    return {name: at for name, at in last.items() if count[name] >= OF_EACH}


def _pace(times: Sequence[datetime]) -> timedelta | None:
    """The time from each to the next, if it is the same for all."""
    gaps = {later - earlier for earlier, later in pairwise(times)}
    return gaps.pop() if len(gaps) == 1 else None


def _day(text: str | None, now: datetime, zone: tzinfo) -> date:
    """Raises UsageError."""
    if text is None:
        today = now.astimezone(zone).date()
        return today - timedelta(days=today.weekday())
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = date.min
    if found.year not in YEARS:
        raise UsageError(f"`{text[:50]}` is not a date.", hint="Such as 2026-11-16.")
    return found


async def calendar(visit: Visit) -> Response:
    """A week from Monday on; what is past comes from the runs, what is to come from the schedules."""
    zone = zone_of(visit.request)
    first = _day(visit.query.get("week"), visit.now, zone)
    last = first + timedelta(days=DAYS)
    begins, ends = (datetime(one.year, one.month, one.day, tzinfo=zone).astimezone(UTC) for one in (first, last))
    start = max(begins, visit.now)
    ahead = max(timedelta(0), ends - start)
    coming = visit.ask(SIMULATE, Simulate(ahead / timedelta(days=1), start, MOST_FIRINGS, each=OF_EACH))
    past = visit.ask(LIST_RUNS, ListRuns(limit=MOST_RUNS))
    firings, runs, _ = await together(coming, past, visit.look())
    shown = [] if runs.error else [one for one in runs.value if begins <= one.created_at < ends]
    oldest = None if runs.error or len(runs.value) < MOST_RUNS else runs.value[-1].created_at
    days = week_of(first, shown, [] if firings.error or not ahead else firings.value, zone)
    return await visit.page(
        "calendar.html",
        days=days,
        week_most=max((count for one in days for count in one.load), default=0),
        zone=zone,
        zone_name=str(zone),
        firings=firings,
        runs=runs,
        until=None if firings.error or len(firings.value) < MOST_FIRINGS else firings.value[-1].at,
        cut=oldest if oldest is not None and oldest > begins else None,
        before=first - timedelta(days=DAYS),
        after=first + timedelta(days=DAYS),
        today=visit.now.astimezone(zone).date(),
    )


async def events(visit: Visit) -> Response:
    query = visit.query
    ask = ListEvents(
        since=query.get("since"), subject=query.get("subject"), actor=query.get("actor"), type=query.get("type"),
        limit=EVENTS,
    )  # fmt: skip
    found, _ = await together(visit.ask(LIST_EVENTS, ask), visit.look())
    shown = [] if found.error else found.value[::-1]
    return await visit.page("events.html", found=found, shown=shown, query=query, most=EVENTS)


@dataclass(frozen=True)
class Column:
    """The beads of one status; `more` if there are others that were not looked at."""

    shown: Sequence[BeadView]
    more: bool
    error: LampError | None

    @classmethod
    def of(cls, found: Answer[Sequence[BeadView]], *, with_runs: bool) -> Self:
        if found.error:
            return cls((), more=False, error=found.error)
        shown = [one for one in found.value if with_runs or one.type not in BOOKKEEPING]
        return cls(shown, more=len(found.value) == BEADS, error=None)


async def beads(visit: Visit) -> Response:
    query = visit.query
    each = [
        visit.ask(LIST_BEADS, ListBeads(status=status, label=query.get("label"), limit=BEADS))
        for status in (BeadStatus.OPEN, BeadStatus.IN_PROGRESS, BeadStatus.CLOSED)
    ]
    *columns, _ = await together(*each, visit.look())
    named = [
        (status, Column.of(found, with_runs="runs" in query))
        for status, found in zip(("open", "in_progress", "closed"), columns, strict=True)
    ]
    return await visit.page("beads.html", columns=named, query=query, most=BEADS)


async def bead(visit: Visit) -> Response:
    """Raises BeadNotFound."""
    found = await visit.do(SHOW_BEAD, ShowBead(visit.path["bead"]))
    return await visit.page("bead.html", one=found)


async def nodes(visit: Visit) -> Response:
    found, _ = await together(visit.ask(LIST_NODES, ListNodes()), visit.look())
    return await visit.page("nodes.html", found=found)


PAGES = (
    ("GET", "/calendar", calendar),
    ("GET", "/events", events),
    ("GET", "/beads", beads),
    ("GET", "/beads/{bead}", bead),
    ("GET", "/nodes", nodes),
)
