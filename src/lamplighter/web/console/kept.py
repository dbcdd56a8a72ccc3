"""The kept views that the navigation names, each with how many runs fit it; looked at once a minute for each person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.services.saved_views import LIST as VIEWS
from lamplighter.services.saved_views import ListViews

if TYPE_CHECKING:
    from lamplighter.web.console.visit import Visit

NAMED = 5
"""So many views are named; all are on the page of the runs."""
COUNTED = 99
FRESH = timedelta(minutes=1)
MOST_PEOPLE = 1000


@dataclass(frozen=True)
class Kept:
    name: str
    query: str
    count: str
    """`99+` where there are more; empty where it is not known."""


_known: dict[tuple[int, str], tuple[datetime, Sequence[Kept]]] = {}


def forget(visit: "Visit") -> None:
    """After somebody has changed what they keep."""
    _known.pop((id(visit.city), visit.actor.name), None)


async def kept_views(visit: "Visit") -> Sequence[Kept]:
    """None of them where the store is away: the page says so anyway."""
    key = (id(visit.city), visit.actor.name)
    known = _known.get(key)
    if known is not None and timedelta(0) <= visit.now - known[0] < FRESH:
        return known[1]
    found = await visit.ask(VIEWS, ListViews())
    if found.error:
        return ()
    shown = sorted(found.value, key=lambda one: (not one.first, one.owner != visit.actor.name, one.name))[:NAMED]
    made = [Kept(one.name, one.query, await _count(visit, one.query)) for one in shown]
    if len(_known) >= MOST_PEOPLE:
        _known.clear()
    _known[key] = (visit.now, made)
    return made


async def _count(visit: "Visit", query: str) -> str:
    found = await visit.ask(LIST_RUNS, ListRuns(limit=COUNTED + 1, query=query))
    if found.error:
        return ""
    return f"{COUNTED}+" if len(found.value) > COUNTED else str(len(found.value))
