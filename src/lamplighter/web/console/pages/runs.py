"""Runs: the list with its filter, and one run with its timeline, output, transcript and artifacts."""

import json
import re
import tomllib
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response, StreamingResponse

from lamplighter.domain.automations.model import AgentAction, TriggerKind
from lamplighter.domain.runs.model import ACTIVE, ATTENTION, TERMINAL, RunState
from lamplighter.domain.runs.query import ACTIONS, YES_OR_NO, QueryWrong
from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.shapes import to_json
from lamplighter.services.connections import LIST as CONNECTIONS
from lamplighter.services.connections import ListConnections
from lamplighter.services.inbox.needs import PLAN
from lamplighter.services.runs.changes import APPLY_RUN, DIFF_RUN, DISCARD_RUN, ApplyRun, DiffRun, DiscardRun
from lamplighter.services.runs.explaining import EXPLAIN, ExplainRun
from lamplighter.services.runs.inputs import INPUTS, InputsView, ShowInputs
from lamplighter.services.runs.logs import SHOW_LOGS, ShowLogs, TranscriptEventView
from lamplighter.services.runs.operations import (
    AMEND_RUN,
    ANSWER_RUN,
    APPROVE_RUN,
    CANCEL_RUN,
    CLAIM_RUN,
    REJECT_RUN,
    RESOLVE_RUN,
    RETRY_RUN,
    UNCLAIM_RUN,
    AmendRun,
    AnswerRun,
    ApproveRun,
    CancelRun,
    ClaimRun,
    RejectRun,
    Resolved,
    ResolveRun,
    RetryRun,
    UnclaimRun,
)
from lamplighter.services.runs.queries import LIST_RUNS, SHOW_RUN, ListRuns, ShowRun
from lamplighter.services.runs.taking import GIVE_RUN, GiveRun
from lamplighter.services.runs.views import QuestionView, RunDetail, RunView, changes_of
from lamplighter.services.saved_views import DELETE as DELETE_VIEW
from lamplighter.services.saved_views import LIST as VIEWS
from lamplighter.services.saved_views import SAVE as SAVE_VIEW
from lamplighter.services.saved_views import DeleteView, ListViews, SaveView
from lamplighter.services.session_operations import SEND, SendMessage
from lamplighter.web.console.ansi import lines_of
from lamplighter.web.console.kept import forget
from lamplighter.web.console.numbers import whole
from lamplighter.web.console.patches import files_of
from lamplighter.web.console.remarks import message_of, remarks_of
from lamplighter.web.console.tables import csv_line
from lamplighter.web.console.timeline import stages_of
from lamplighter.web.console.visit import HEADERS, Given, Visit, back, together, url_with

PAGE = 50
CHUNK = 500
MOST_PAGES = 1000
"""An export ends after so many chunks."""
COLUMNS = (
    "id", "automation", "state", "reason", "error", "action", "rig", "attempt", "created_at", "started_at", "ended_at",
    "duration_s", "exit_code", "cost", "tokens", "summary",
)  # fmt: skip
"""Of a run in a table of another program."""
MOST_ROWS = 500
"""Of a longer transcript so many rows are shown at once."""


async def runs(visit: Visit) -> Response:
    text, views = _query(visit.query), await visit.ask(VIEWS, ListViews())
    first = next((one for one in views.found or () if one.first and one.owner == visit.actor.name), None)
    if first is not None and not visit.request.url.query:
        return back(f"/runs{url_with({}, q=first.query)}")
    found, connections, _ = await together(
        visit.ask(LIST_RUNS, _asked(text, visit.query.get("before"), PAGE + 1)),
        visit.ask(CONNECTIONS, ListConnections()), visit.look(),
    )  # fmt: skip
    paths = {path for one in connections.found or () for path in one.fields}
    wrong = found.error if isinstance(found.error, QueryWrong) else None
    shown = [] if found.error else found.value[:PAGE]
    older = shown[-1].id if not found.error and len(found.value) > PAGE else None
    return await visit.page(
        "runs.html",
        status=200 if wrong is None else 400,
        found=found,
        wrong=wrong,
        views=views,
        shown=shown,
        older=older,
        searched_to=getattr(found.found, "searched_to", None),
        text=text,
        before=visit.query["before"],
        of_state=_value_of(text, "state"),
        state_chosen=_chosen(text),
        states=[one.value for one in RunState],
        with_state={one.value: with_state(text, one) for one in RunState},
        without_state=with_state(text, None),
        values=json.dumps(_values(shown) | {f"payload.{path}": [] for path in sorted(paths)}),
    )


async def save_view(visit: Visit) -> Response:
    form = await visit.form()
    kept = await visit.do(
        SAVE_VIEW, SaveView(form["name"], form["query"], form["shared"] == "yes", form["first"] == "yes")
    )
    forget(visit)
    return back(f"/runs{url_with({}, q=kept.query)}", f"Kept as {kept.name}.")


async def delete_view(visit: Visit) -> Response:
    form = await visit.form()
    await visit.do(DELETE_VIEW, DeleteView(form["name"]))
    forget(visit)
    return back("/runs?all", f"{form['name']} is forgotten.")


def _query(query: Given) -> str:
    """What is searched for. An address may name an automation or a state by themselves. Raises UsageError."""
    text = query["q"].strip()
    for field in ("automation", "state"):
        if query[field]:
            text = with_term(text, field, _state(query[field]) if field == "state" else query[field])
    return text


def _asked(text: str, before: str | None, limit: int) -> ListRuns:
    return ListRuns(before=before, limit=limit, query=text or None)


def _term(field: str) -> re.Pattern[str]:
    return re.compile(rf'(?:^|(?<=\s)){field}:((?:"[^"]*"|[^\s"])*)(?:\s+|$)')


def with_term(text: str, field: str, value: str) -> str:
    """The query with this as the only value of the field; without the field if there is none."""
    rest = _term(field).sub("", text).strip()
    said = f'"{value}"' if re.search(r"[\s,]", value) else value
    return f"{rest} {field}:{said}".strip() if value else rest


def with_state(text: str, state: RunState | None) -> str:
    """The query for runs in this state alone; those that need a person are only those that nobody has answered."""
    asks = "no" if state is RunState.NEEDS_HUMAN else ""
    return with_term(with_term(text, "state", "" if state is None else state.value), "continued", asks)


def _chosen(text: str) -> str:
    """The state of the chip that says what the query says, or none."""
    state = _value_of(text, "state")
    needed = "no" if state == RunState.NEEDS_HUMAN else ""
    return state if _value_of(text, "continued") == needed else ""


def _value_of(text: str, field: str) -> str:
    found = _term(field).search(text)
    return found[1] if found else ""


def _values(shown: Sequence[RunView]) -> dict[str, list[str]]:
    """What the bar proposes for each field: what there is to choose from, or what the page shows."""
    return {
        "state": [one.value for one in RunState],
        "automation": sorted({one.automation for one in shown}),
        "reason": sorted({one.reason for one in shown if one.reason}),
        "rig": sorted({one.rig for one in shown if one.rig}),
        "trigger": sorted({one.trigger.kind for one in shown}),
        "action": list(ACTIONS),
        "continued": list(YES_OR_NO),
        "claimed": ["me", *sorted({one.assigned_to for one in shown if one.assigned_to})],
        "cost": [">0", ">1", ">10"],
        "since": ["1h", "1d", "7d"],
        "until": ["1h", "1d", "7d"],
    }


async def export(visit: Visit) -> Response:
    """All that the query finds, as CSV or as JSON lines, page by page as it is read. Raises QueryWrong."""
    text, kind = _query(visit.query), visit.path["kind"]
    if kind not in {"csv", "json"}:
        raise NotFound(f"Runs are not written as `{kind[:20]}`.", hint="There are csv and json.")
    first = await visit.do(LIST_RUNS, _asked(text, None, CHUNK))

    async def written() -> AsyncIterator[str]:
        if kind == "csv":
            yield csv_line(COLUMNS)
        page = first
        for _ in range(MOST_PAGES):
            for one in page:
                yield csv_line(_cells(one)) if kind == "csv" else json.dumps(to_json(one)) + "\n"
            last = page[-1].id if len(page) == CHUNK else getattr(page, "searched_to", None)
            if last is None:
                return
            page = await visit.do(LIST_RUNS, _asked(text, last, CHUNK))

    media = "text/csv; charset=utf-8" if kind == "csv" else "application/x-ndjson"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="runs.{kind}"', "Cache-Control": "no-store"}
    return StreamingResponse(written(), media_type=media, headers=headers)


def _cells(one: RunView) -> list[str]:
    told = to_json(one)
    return ["" if told[name] is None else str(told[name]) for name in COLUMNS]


def _state(text: str) -> str:
    """Raises UsageError."""
    try:
        return RunState(text).value
    except ValueError:
        known = ", ".join(one.value for one in RunState)
        raise UsageError(f"There is no state `{text[:50]}` of runs.", hint=f"Those there are: {known}.") from None


async def run(visit: Visit) -> Response:
    """Raises RunUnknown."""
    name = visit.path["run"]
    shown = await visit.do(SHOW_RUN, ShowRun(name))
    logs, inputs, why, _ = await together(
        visit.ask(SHOW_LOGS, ShowLogs(name)), visit.ask(INPUTS, ShowInputs(shown.id)),
        visit.ask(EXPLAIN, ExplainRun(shown.id)), visit.look(),
    )  # fmt: skip
    lines, left_out = ([], 0) if logs.error else lines_of(logs.value.output)
    find, last = visit.query["find"].strip()[:200], whole(visit.query["upto"])
    every = [] if logs.error else list(enumerate(logs.value.transcript, 1))
    rows = _with(every, find)[:MOST_ROWS] if find else every[:last][-MOST_ROWS:]
    open_still = shown.state is RunState.NEEDS_HUMAN and not (shown.continued_by or shown.retried_by)
    return await visit.page(
        "run.html",
        run=shown,
        active=shown.state in ACTIVE,
        ended=shown.state in TERMINAL,
        changed=changes_of(shown.events),
        stages=stages_of(shown.events, shown.created_at, shown.ended_at, visit.now),
        logs=logs,
        inputs=inputs,
        payload=_written(inputs.found),
        prompt=_prompt(inputs.found),
        deliveries=_deliveries(shown.trigger.kind, inputs.found),
        asks=shown.state in ATTENTION,
        asked=_asks(shown),
        waits_for_answer=open_still and _asks(shown) is not None,
        waits_for_plan=open_still and shown.reason == PLAN,
        lines=lines,
        left_out=left_out,
        rows=rows,
        rows_all=len(every),
        rows_first=rows[0][0] if rows else 1,
        find=find,
        upto=last,
        why=why,
    )


def _with(rows: Sequence[tuple[int, TranscriptEventView]], text: str) -> list[tuple[int, TranscriptEventView]]:
    """The rows that have the text in what they say, whatever its case."""
    wanted = text.casefold()
    return [
        (number, row) for number, row in rows if any(wanted in str(value).casefold() for value in row.body.values())
    ]


def _asks(run: RunDetail) -> QuestionView | None:
    """What it asks a person; without text where it ended so and only its summary says why."""
    if run.state is not RunState.NEEDS_HUMAN or run.action != AgentAction.kind or run.reason == PLAN:
        return None
    return run.question or QuestionView("", (), None)


def _written(inputs: InputsView | None) -> str:
    """What the trigger brought, with its keys in order."""
    if inputs is None or inputs.payload is None:
        return ""
    return json.dumps(inputs.payload, indent=2, sort_keys=True, ensure_ascii=False)


def _prompt(inputs: InputsView | None) -> str:
    """What its automation told the agent at that time; what it names as files is not in it."""
    if inputs is None or not inputs.toml:
        return ""
    agent = tomllib.loads(inputs.toml).get("automation", {}).get("agent", {})
    return str(agent.get("prompt", ""))


def _deliveries(kind: str, inputs: InputsView | None) -> list[str]:
    """The deliveries that fired it; a burst has several."""
    if kind != TriggerKind.WEBHOOK or inputs is None or inputs.payload is None:
        return []
    events = inputs.payload.get("events")
    several = [one.get("delivery") for one in events] if isinstance(events, list) else []
    return [one for one in several or [inputs.payload.get("delivery")] if isinstance(one, str)]


async def output(visit: Visit) -> Response:
    """The whole output as a file. Raises RunUnknown."""
    name = visit.path["run"]
    found = await visit.do(SHOW_LOGS, ShowLogs(name))
    headers = {
        "Content-Disposition": f'attachment; filename="{found.id}.txt"', "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }  # fmt: skip
    return Response(found.output.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8", headers=headers)


async def cancel(visit: Visit) -> Response:
    found = await visit.do(CANCEL_RUN, CancelRun(visit.path["run"]))
    return back(f"/runs/{found.id}", "Canceled.")


async def retry(visit: Visit) -> Response:
    found = await visit.do(RETRY_RUN, RetryRun(visit.path["run"]))
    return back(f"/runs/{found.id}", "This is the new run.")


async def answer(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(ANSWER_RUN, AnswerRun(visit.path["run"], form.get("text", "")))
    return back(f"/runs/{found.id}", "Answered; this run continues the work.")


async def approve(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(APPROVE_RUN, ApproveRun(visit.path["run"], form.get("text", "")))
    return back(f"/runs/{found.id}", "This run carries the plan out.")


async def amend(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(AMEND_RUN, AmendRun(visit.path["run"], form.get("text", "")))
    return back(f"/runs/{found.id}", "This run makes a new plan.")


async def give(visit: Visit) -> Response:
    found = await visit.do(GIVE_RUN, GiveRun(visit.path["run"]))
    return back(f"/runs/{found.id}", "Its agent goes on with it.")


async def reject(visit: Visit) -> Response:
    form = await visit.form()
    found = await visit.do(REJECT_RUN, RejectRun(visit.path["run"], form.get("reason", "")))
    return back(f"/runs/{found.id}", "Rejected; nothing of it is done.")


async def claim(visit: Visit) -> Response:
    found = await visit.do(CLAIM_RUN, ClaimRun(visit.path["run"]))
    return back(f"/runs/{found.id}", "It is yours now; others see that.")


async def unclaim(visit: Visit) -> Response:
    found = await visit.do(UNCLAIM_RUN, UnclaimRun(visit.path["run"]))
    return back(f"/runs/{found.id}", "Nobody looks after it now.")


async def resolve(visit: Visit) -> Response:
    form = await visit.form()
    outcome = Resolved.FAILED if form["outcome"] == Resolved.FAILED else Resolved.SUCCEEDED
    found = await visit.do(RESOLVE_RUN, ResolveRun(visit.path["run"], outcome, form["reason"], form["comment"]))
    return back(f"/runs/{found.id}", f"Resolved as {outcome.value}.")


async def send(visit: Visit) -> Response:
    form = await visit.form()
    run = visit.path["run"]
    if not form["text"].strip():
        raise UsageError("There is nothing to say.", hint="Write a message first.")
    sent = await visit.do(SEND, SendMessage(run, form["text"].strip()))
    said = "It is told when this run has ended." if sent.how == "queued" else "This run goes on with its work."
    return back(f"/runs/{sent.run or run}", said)


async def changes(visit: Visit) -> Response:
    """Raises RunUnknown, NoChangesKept, and what git says."""
    found = await visit.do(DIFF_RUN, DiffRun(visit.path["run"]))
    files, left_out = files_of(found.patch)
    return await visit.page("changes.html", changes=found, files=files, left_out=left_out)


async def remark(visit: Visit) -> Response:
    """What was remarked on lines of its changes, told to the run as one message."""
    form, run = await visit.form(), visit.path["run"]
    found = remarks_of(*(form.all(name) for name in ("file", "line", "quoted", "remark")))
    if not found:
        raise UsageError("There is no remark.", hint="Write one beside a file or a line first. Nothing was sent.")
    sent = await visit.do(SEND, SendMessage(run, message_of(found)))
    said = "They are told when this run has ended." if sent.how == "queued" else "This run goes on, and is told them."
    return back(f"/runs/{sent.run or run}", said)


async def apply(visit: Visit) -> Response:
    found = await visit.do(APPLY_RUN, ApplyRun(visit.path["run"]))
    return back(f"/runs/{found.id}", f"Its changes are in {found.repository} now, uncommitted.")


async def discard(visit: Visit) -> Response:
    found = await visit.do(DISCARD_RUN, DiscardRun(visit.path["run"]))
    kept = f" Commits stay on the branch {found.kept_branch}." if found.kept_branch else ""
    return back(f"/runs/{found.id}", f"Its worktree is removed.{kept}")


PAGES = (
    ("GET", "/runs", runs),
    ("GET", "/runs/export/{kind}", export),
    ("POST", "/runs/views/save", save_view),
    ("POST", "/runs/views/forget", delete_view),
    ("GET", "/runs/{run}", run),
    ("GET", "/runs/{run}/changes", changes),
    ("POST", "/runs/{run}/remarks", remark),
    ("POST", "/runs/{run}/apply", apply),
    ("POST", "/runs/{run}/discard", discard),
    ("GET", "/runs/{run}/output", output),
    ("POST", "/runs/{run}/cancel", cancel),
    ("POST", "/runs/{run}/retry", retry),
    ("POST", "/runs/{run}/answer", answer),
    ("POST", "/runs/{run}/approve", approve),
    ("POST", "/runs/{run}/amend", amend),
    ("POST", "/runs/{run}/reject", reject),
    ("POST", "/runs/{run}/give", give),
    ("POST", "/runs/{run}/claim", claim),
    ("POST", "/runs/{run}/unclaim", unclaim),
    ("POST", "/runs/{run}/resolve", resolve),
    ("POST", "/runs/{run}/send", send),
)
