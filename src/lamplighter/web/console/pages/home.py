"""The start page: what needs a person, what is under way, what was done lately."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from lamplighter.domain.inbox.items import Kind
from lamplighter.domain.runs.model import RunState
from lamplighter.services.inbox.queries import LIST as INBOX
from lamplighter.services.inbox.queries import ListInbox
from lamplighter.services.looking import LOOK, LookAtHome
from lamplighter.services.rollups import SHOW_COST, By, CostView, ShowCost, StripDay
from lamplighter.services.runs.queries import LIST_RUNS, ListRuns
from lamplighter.services.runs.views import RunView
from lamplighter.web.console.charts import Chart, costs_of, outcomes_of
from lamplighter.web.console.visit import Answer, Visit, together

EACH = 30
"""Of each state so many runs are looked at."""
CHART_DAYS = 14
SPANS = (7, 14, 30, 90)
"""So many days of cost can be looked at."""
SHOWN = 8
"""So many items of the inbox are shown; the others are on its own page."""
_UNDER_WAY = (RunState.RUNNING, RunState.READY, RunState.ENRICHING, RunState.QUEUED)
_DONE = (RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED)


@dataclass(frozen=True)
class Alike:
    """Runs of one automation that ended alike, newest first."""

    runs: Sequence[RunView]

    @property
    def newest(self) -> RunView:
        return self.runs[0]


def by_automation(runs: Sequence[RunView]) -> list[Alike]:
    """Runs that ended well are proof of life: one row for each automation and state, the newest first."""
    folded: dict[tuple[str, str], list[RunView]] = {}
    for run in sorted(runs, key=lambda one: one.id, reverse=True):
        folded.setdefault((run.automation, run.state.value), []).append(run)
    return [Alike(found) for found in folded.values()]


def first_error(*answers: Answer[list[RunView]]) -> Answer[list[RunView]]:
    """All runs that were answered; an error if one question was not answered, because the rest is not the whole."""
    for one in answers:
        if one.error is not None:
            return one
    return Answer([run for one in answers for run in one.value])


async def home(visit: Visit) -> Response:
    asked = [visit.ask(LIST_RUNS, ListRuns(state=state, limit=EACH)) for state in (*_UNDER_WAY, *_DONE)]
    *found, needs, days, look, _ = await together(
        *asked, visit.ask(INBOX, ListInbox(limit=SHOWN + 1)), visit.ask(SHOW_COST, ShowCost(days=CHART_DAYS)),
        visit.ask(LOOK, LookAtHome()), visit.look(),
    )  # fmt: skip
    done = first_error(*found[len(_UNDER_WAY) :])
    looked = None if look.error else look.value.before
    ended = [] if done.error else done.value
    since = [one for one in ended if looked is None or (one.ended_at or one.created_at) >= looked]
    before = [one for one in ended if one not in since]
    lately, earlier = by_automation(since), by_automation(before)
    items = [] if needs.error else needs.value[:SHOWN]
    return await visit.page(
        "home.html",
        needs=needs,
        items=items,
        more=not needs.error and len(needs.value) > SHOWN,
        asking={one.subject for one in items if one.kind is Kind.WAITING},
        news=sum(not one.seen for one in items),
        under_way=first_error(*found[: len(_UNDER_WAY)]),
        done=done,
        days=days,
        chart=_chart(days.found),
        looked=looked,
        since=since,
        since_more=_more_of(found[len(_UNDER_WAY) :], since),
        lately=[one.newest for one in lately],
        earlier=[one.newest for one in earlier],
        counts={one.newest.id: len(one.runs) for one in (*lately, *earlier)},
    )


def _more_of(found: Sequence[Answer[list[RunView]]], since: Sequence[RunView]) -> bool:
    """Whether all that were looked at of some state are among those shown, so that there may be more."""
    return any(one.found is not None and len(one.value) == EACH and one.value[-1] in since for one in found)


def _chart(cost: CostView | None) -> Chart | None:
    return None if cost is None else outcomes_of(StripDay(one.key, one.runs, one.outcomes) for one in cost.lines)


async def cost(visit: Visit) -> Response:
    """What agents cost by automation, model and day; a page of its own, because with many runs it takes a while."""
    wanted = visit.query["days"]
    span = int(wanted) if wanted in {str(one) for one in SPANS} else CHART_DAYS
    by_automation, by_model, by_day, _ = await together(
        *(visit.ask(SHOW_COST, ShowCost(by, span)) for by in (By.AUTOMATION, By.MODEL, By.DAY)), visit.look()
    )
    return await visit.page(
        "cost.html", by_automation=by_automation, by_model=by_model, by_day=by_day, days=span, spans=SPANS,
        bars=None if by_day.error else costs_of(by_day.value.lines),
    )  # fmt: skip


PAGES = (("GET", "/", home), ("GET", "/cost", cost))
