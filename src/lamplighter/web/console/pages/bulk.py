"""Bulk actions: what one would do, said before it is done; how far one is; and those there were."""

from starlette.responses import Response

from lamplighter.domain.runs.bulk import PART, BulkOutcome, BulkVerb
from lamplighter.kit.errors import UsageError
from lamplighter.services.bulk.operations import (
    ABORT,
    CREATE,
    LIST,
    PREVIEW,
    RESULTS,
    SHOW,
    AbortBulk,
    BulkPreview,
    CreateBulk,
    ListBulk,
    ListResults,
    PreviewBulk,
    ShowBulk,
)
from lamplighter.services.runs.operations import Resolved
from lamplighter.web.console.numbers import whole
from lamplighter.web.console.visit import Visit, back, together

PAGE = 50
RUN = "run"
"""The name of the boxes by which runs are chosen: one for each."""


async def bulks(visit: Visit) -> Response:
    found, _ = await together(visit.ask(LIST, ListBulk(None, visit.query.get("before"), PAGE + 1)), visit.look())
    shown = [] if found.error else found.value[:PAGE]
    older = shown[-1].id if not found.error and len(found.value) > PAGE else None
    return await visit.page("bulks.html", found=found, shown=shown, older=older, before=visit.query["before"])


async def preview(visit: Visit) -> Response:
    """What would be done to the runs that were chosen; nothing is done yet. Raises UsageError and as PREVIEW does."""
    form = await visit.form()
    action, query = _action(form["action"]), form["q"].strip() if form["all"] == "yes" else ""
    runs = [] if query else form.all(RUN)
    if not query and not runs:
        raise UsageError("No run is chosen.", hint="Tick some, or all that fit the filter. Nothing was done.")
    found: BulkPreview = await visit.do(PREVIEW, PreviewBulk(action, tuple(runs), query or None))
    return await visit.page(
        "bulk_preview.html", found=found, runs=runs, query=query, back_to=form["q"].strip(),
        operation=f"run.{action.value}",
    )  # fmt: skip


async def create(visit: Visit) -> Response:
    form = await visit.form()
    outcome = Resolved(form["outcome"]) if form["outcome"] in set(Resolved) else None
    made = await visit.do(
        CREATE,
        CreateBulk(
            _action(form["action"]), tuple(form.all(RUN)), form["q"].strip() or None, outcome, form["reason"],
            form["comment"],
        ),
    )  # fmt: skip
    return back(f"/bulk/{made.id}", "It has begun.")


async def bulk(visit: Visit) -> Response:
    """Raises BulkUnknown."""
    outcome = BulkOutcome(visit.query["outcome"]) if visit.query["outcome"] in set(BulkOutcome) else None
    after, name = whole(visit.query["after"]), visit.path["bulk"]
    shown, results, _ = await together(
        visit.do(SHOW, ShowBulk(name)), visit.ask(RESULTS, ListResults(name, outcome, after, PART + 1)), visit.look()
    )
    rows = [] if results.error else results.value[:PART]
    more = rows[-1].number if not results.error and len(results.value) > PART else None
    return await visit.page(
        "bulk.html", bulk=shown, results=results, rows=rows, more=more, after=after,
        outcome=None if outcome is None else outcome.value,
    )  # fmt: skip


async def abort(visit: Visit) -> Response:
    done = await visit.do(ABORT, AbortBulk(visit.path["bulk"]))
    return back(f"/bulk/{done.id}", "Aborted: what is done stays done, and the rest is left alone.")


def _action(text: str) -> BulkVerb:
    """Raises UsageError."""
    try:
        return BulkVerb(text)
    except ValueError:
        known = ", ".join(one.value for one in BulkVerb)
        raise UsageError("No action is chosen.", hint=f"Those there are: {known}. Nothing was done.") from None


PAGES = (
    ("GET", "/bulk", bulks),
    ("POST", "/bulk", preview),
    ("POST", "/bulk/create", create),
    ("GET", "/bulk/{bulk}", bulk),
    ("POST", "/bulk/{bulk}/abort", abort),
)
