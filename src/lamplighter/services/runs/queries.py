"""Reading runs: a page of them, and one in full. It imports little, because `lamp run list` is used often."""

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.model import ACTIVE, RunState
from lamplighter.kit.errors import UsageError
from lamplighter.kit.records import changed, record
from lamplighter.kit.shapes import given
from lamplighter.ports.runs import RunUnknown
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, Page, read
from lamplighter.services.runs.views import RunDetail, RunView, detail, view
from lamplighter.store.tx import Tx

RUN_ID = "The run's id or a part of it, `last`, `last:AUTOMATION`, or an automation's name for its newest run."

PAUSED = "the city is paused; `lamp resume` lets it go on"
_NOT_YET_AT_WORK = ACTIVE - {RunState.RUNNING}


@record
class ListRuns:
    """Runs, newest first."""

    automation: str | None = given("Only of this automation.", default=None, names="automation")
    state: RunState | None = given("Only in this state.", default=None)
    before: str | None = given("Only runs older than this one: the next page.", default=None, metavar="ID", names="run")
    limit: int = given("At most so many.", default=50, least=1, most=10_000)
    query: str | None = given(
        "Only those that fit, such as `state:failed automation:nightly* since:2d -reason:budget`.",
        default=None, key="q", metavar="QUERY",
    )  # fmt: skip


@record
class ShowRun:
    """A run with its state, timeline and artifacts."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


def list_runs(tx: Tx, ask: ListRuns, ctx: Context) -> list[RunView]:
    """Raises AutomationUnknown if no run matches and the automation does not exist, QueryWrong."""
    if ask.query is not None:
        return _searched(tx, ask, ctx)
    found = tx.runs.page(automation=ask.automation, state=ask.state, before=ask.before, limit=ask.limit)
    if not found and ask.automation is not None:
        from lamplighter.services.automations import editing

        editing.get(tx, ask.automation)
    artifacts = tx.artifacts.of_some(row.id for row in found) if found else {}
    return [view(row, artifacts.get(row.id, ())) for row in found]


def _searched(tx: Tx, ask: ListRuns, ctx: Context) -> list[RunView]:
    from lamplighter.domain.runs import query
    from lamplighter.services.searching import Found

    if ask.automation is not None or ask.state is not None:
        raise UsageError("A query stands alone.", hint="Write the automation and the state into it.")
    text = ask.query or ""
    paths = declared_paths(tx) if query.PAYLOAD in text else ()
    rows, searched_to = tx.runs.search(
        query.parse(text, ctx.now, paths, ctx.actor.name), before=ask.before, limit=ask.limit
    )
    artifacts = tx.artifacts.of_some(row.id for row in rows) if rows else {}
    return Found([view(row, artifacts.get(row.id, ())) for row in rows], searched_to)


def declared_paths(tx: Tx) -> list[str]:
    """The paths by which the payloads of deliveries are found."""
    from lamplighter.domain.delivery_fields import SEARCHED

    return [path for one in tx.connections.all() for path in one.fields or SEARCHED[one.provider]]


def show_run(tx: Tx, ask: ShowRun, _ctx: Context) -> RunDetail:
    """Raises RunUnknown."""
    row = tx.runs.get(ask.run)
    if row is None:
        raise RunUnknown(ask.run)
    again = tx.runs.retried_by(row.automation, row.id) if row.ended else None
    shown = detail(row, tx.runs.events(row.id), tx.artifacts.of(row.id), retried_by=again)
    return changed(shown, waits_for=PAUSED) if row.state in _NOT_YET_AT_WORK and _is_paused(tx) else shown


def _is_paused(tx: Tx) -> bool:
    city = tx.cities.find()
    return city is not None and city.paused_at is not None


LIST_RUNS = read(
    "run.list", Verb.READ, ListRuns, list[RunView], list_runs, http=Http("GET", "/runs", page=Page("before", "id"))
)
SHOW_RUN = read("run.show", Verb.READ, ShowRun, RunDetail, show_run, tool="run_get", http=Http("GET", "/runs/{run}"))
