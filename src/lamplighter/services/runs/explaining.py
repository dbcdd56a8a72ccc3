"""Why a run is as it is: what set it off, what it waited for, how it came to its end, in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamplighter.domain.access import Verb
from lamplighter.domain.runs.model import ACTIVE, RunState, said
from lamplighter.kit.durations import spoken
from lamplighter.kit.shapes import given
from lamplighter.services.context import Context
from lamplighter.services.operation import Http, read
from lamplighter.services.runs.queries import RUN_ID, ShowRun, show_run
from lamplighter.services.runs.views import RunDetail, RunEventView
from lamplighter.store.tx import Tx


@dataclass(frozen=True)
class ExplainRun:
    """Why a run is as it is: what set it off, what it waited for, how it came to its end."""

    run: str = given(RUN_ID, key="run_id", metavar="ID", positional=True, names="run")


@dataclass(frozen=True)
class RunExplained:
    id: str
    sentences: Sequence[str]


def explain_run(tx: Tx, ask: ExplainRun, ctx: Context) -> RunExplained:
    """Raises RunUnknown."""
    run = show_run(tx, ShowRun(ask.run), ctx)
    return RunExplained(run.id, sentences_of(run, ctx.now))


def _span(value: timedelta) -> str:
    """In whole seconds: these are sentences, not measurements."""
    return spoken(timedelta(seconds=int(value.total_seconds())))


def sentences_of(run: RunDetail, now: datetime) -> list[str]:
    return [*_begun(run), *_waited(run, now), *_where(run), *_going(run, now), *_ended(run), *_after(run)]


def _begun(run: RunDetail) -> Iterator[str]:
    first = run.events[0] if run.events else None
    reason = str(_data(first).get("reason") or "")
    if run.retry_of:
        yield f"It is try number {run.attempt + 1} of what run {run.retry_of} was to do."
    elif run.continues:
        yield f"It goes on with the work of run {run.continues}{f': {reason}' if reason else ''}."
    else:
        yield _set_off(run, first.actor if first is not None else None, f": {reason}" if reason else "")
    if run.causes:
        yield f"What led to it: {' → '.join(run.causes)}."


def _set_off(run: RunDetail, actor: str | None, told: str) -> str:
    kind = run.trigger.kind
    if kind == "manual":
        return f"It was started by hand{f', by {actor}' if actor else ''}."
    return f"Trigger {run.trigger.id}{f' ({kind})' if kind != run.trigger.id else ''} set it off{told}."


def _waited(run: RunDetail, now: datetime) -> Iterator[str]:
    if run.waits_for:
        until = f", until {run.lifts_at:%Y-%m-%d %H:%M} UTC at the latest" if run.lifts_at else ""
        yield f"It waits: {run.waits_for}{until}."
    elif run.state in {RunState.QUEUED, RunState.ENRICHING, RunState.READY}:
        yield f"No worker has taken it up yet; it has waited for {_span(now - run.created_at)}."
    elif run.started_at:
        waited = run.started_at - run.created_at
        yield (
            f"It was taken up after {_span(waited)}." if waited >= timedelta(seconds=1) else "It was taken up at once."
        )


def _where(run: RunDetail) -> Iterator[str]:
    for event in run.events:
        data = _data(event)
        if event.type == "target_resolved":
            which = f"configuration {data['configuration']}" if data.get("configuration") else "the city's defaults"
            reason = str(data.get("reason") or data.get("type"))
            how = "" if reason == "selection_disabled" else f" ({reason.replace('_', ' ')})"
            yield f"It takes {which}{how}."
        elif event.type == "session_created" and data.get("isolation"):
            why = f", because {data['why']}".removesuffix(".") if data.get("why") else ""
            own = "in place" if data["isolation"] == "none" else f"in a {data['isolation']} of its own"
            yield f"It works {own}{why}."


def _going(run: RunDetail, now: datetime) -> Iterator[str]:
    if run.state is not RunState.RUNNING:
        return
    if run.taken_by:
        yield f"{run.taken_by} has taken it over; its clock stands."
    elif run.deadline_at:
        left = run.deadline_at - now
        yield (
            f"It is ended at its deadline, in {_span(left)}."
            if left.total_seconds() > 0
            else ("Its deadline has come: it is being ended.")
        )
    if run.verifying:
        yield f"It claims a success, which is being verified (round {run.round})."


def _ended(run: RunDetail) -> Iterator[str]:
    if run.state in ACTIVE:
        return
    last = next((one for one in reversed(run.events) if one.to_state == run.state.value), None)
    by_person = last is not None and (last.type == "manual_resolution" or run.state is RunState.CANCELED)
    by = f", by {last.actor}" if last is not None and by_person else ""
    code = f"; its command ended with exit code {run.exit_code}" if run.exit_code is not None else ""
    told = {run.state.value, f"exit_{run.exit_code}"}
    why = run.reason.replace("_", " ") if run.reason and run.reason not in told else ""
    yield f"It {said(run.state)}{f' ({why})' if why else ''}{by}{code}."
    if run.grade:
        yield (
            "Its automation's own check verified the success."
            if run.grade == "verified"
            else "Its agent claims the success; nothing was named to verify it."
        )


def _after(run: RunDetail) -> Iterator[str]:
    if run.retried_by:
        yield f"It was tried again as run {run.retried_by}."
    elif run.state in {RunState.FAILED, RunState.TIMED_OUT} and run.attempts > 1:
        yield f"That was attempt {run.attempt + 1} of {run.attempts}."
    if run.continued_by:
        yield f"Run {run.continued_by} goes on with its work."


def _data(event: RunEventView | None) -> Mapping[str, Any]:
    return event.data if event is not None and isinstance(event.data, Mapping) else {}


EXPLAIN = read("run.explain", Verb.READ, ExplainRun, RunExplained, explain_run, http=Http("GET", "/runs/{run}/explain"))
