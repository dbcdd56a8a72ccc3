"""The spans of an ended run, made from what is on record of it: the run, its stages, its sessions and their tools.

The names of attributes are those of OpenTelemetry's conventions for pipelines and for generative AI, else `lamp.*`.
Nothing is told of what a program said, wrote or was asked: names, times, outcomes and counts only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.domain.runs.model import TERMINAL, Run, RunState
from lamplighter.domain.runs.tracing import SpanContext, context_of, span_id
from lamplighter.kit.records import record

MOST_TOOLS = 1000
"""So many tool calls of a run have spans; its own span says how many were left out."""
MOST_EVENTS = 100
_CLAIMED, _JUDGED = "completion_claimed", {"verify_passed": "success", "verify_failed": "failure"}
_RESULTS = {
    RunState.SUCCEEDED: "success",
    RunState.FAILED: "failure",
    RunState.TIMED_OUT: "timeout",
    RunState.CANCELED: "cancellation",
    RunState.SKIPPED: "skip",
    RunState.NEEDS_HUMAN: "needs_human",
}
_WRONG = frozenset({RunState.FAILED, RunState.TIMED_OUT})

Value = str | int | float | bool


class SpanKind(StrEnum):
    SERVER = "server"
    INTERNAL = "internal"


@record
class Span:
    """`parent` is the span it belongs to, None for the first of a trace; `error` says what went wrong, if anything."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    begins: datetime
    ends: datetime
    kind: SpanKind = SpanKind.INTERNAL
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[tuple[str, datetime], ...] = ()
    links: tuple[SpanContext, ...] = ()
    error: str | None = None


@record
class Moment:
    """An entry of the run's timeline."""

    at: datetime
    type: str
    to: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@record
class Said:
    """An entry of a session's transcript."""

    number: int
    at: datetime
    kind: str
    body: Mapping[str, Any]


@record
class Worked:
    """A session of the run; `program` is the program's own name for it."""

    id: str
    begins: datetime
    ends: datetime | None
    program: str | None = None
    exit_status: int | None = None
    said: Sequence[Said] = ()


@record
class Recorded:
    """All that is on record of a run that has ended. `links` are spans of others that led to it."""

    run: Run
    sender: SpanContext | None
    timeline: Sequence[Moment]
    sessions: Sequence[Worked] = ()
    links: tuple[SpanContext, ...] = ()
    url: str = ""
    city: str = ""


@record
class _End:
    """How the run ended first; a person may have resolved it since."""

    at: datetime
    state: RunState
    reason: str


def spans_of(told: Recorded) -> list[Span]:
    """The run's own span first; empty for a run that has not ended."""
    end = _end(told)
    if end is None:
        return []
    own = context_of(told.run.id, told.sender)
    stages = list(_stages(told, own, end))
    running = next((one.context for one in stages if one.name == RunState.RUNNING), own)
    worked, left_out = _worked(told, running, end)
    return [_run(told, own, end, left_out), *stages, *_verified(told, running), *worked]


def _end(told: Recorded) -> _End | None:
    for moment in told.timeline:
        if moment.to is not None and moment.to in TERMINAL:
            return _End(moment.at, RunState(moment.to), str(moment.data.get("reason") or moment.to))
    return None


def _run(told: Recorded, own: SpanContext, end: _End, left_out: int) -> Span:
    run = told.run
    known: dict[str, Value | None] = {
        "cicd.pipeline.name": run.automation,
        "cicd.pipeline.action.name": "RUN",
        "cicd.pipeline.run.id": run.id,
        "cicd.pipeline.result": _RESULTS[end.state],
        "cicd.pipeline.run.url.full": told.url,
        "error.type": end.reason if end.state in _WRONG else None,
        "lamp.city": told.city,
        "lamp.rig": run.rig,
        "lamp.action": run.action,
        "lamp.trigger.kind": run.trigger_kind,
        "lamp.run.state": end.state.value,
        "lamp.run.reason": end.reason,
        "lamp.run.attempt": run.attempt,
        "lamp.run.round": run.round,
        "lamp.run.grade": None if run.grade is None else run.grade.value,
        "lamp.run.retries": run.retries,
        "lamp.run.continues": run.continues,
        "lamp.run.cost_usd": run.cost,
        "lamp.run.tools_left_out": left_out or None,
        "process.exit.code": run.exit_code,
    }
    others = [(one.type, one.at) for one in told.timeline if one.type != "status_transition" and one.to not in TERMINAL]
    return Span(
        f"RUN {run.automation}", own, told.sender, run.created_at, max(end.at, run.created_at), SpanKind.SERVER,
        _given(known), tuple(others[:MOST_EVENTS]), told.links, _wrong(end),
    )  # fmt: skip


def _wrong(end: _End) -> str | None:
    return end.reason.replace("_", " ") if end.state in _WRONG else None


def _stages(told: Recorded, own: SpanContext, end: _End) -> Iterator[Span]:
    """A span for each state that the run was in, unless it passed through it at once."""
    moves = [(one.at, one.to) for one in told.timeline if one.to is not None]
    at, state = told.run.created_at, moves[0][1] if moves else None
    for moved, to in moves:
        if to == state:
            continue
        if moved > at or state == RunState.RUNNING:
            yield _stage(told.run, own, str(state), at, moved, end if to in TERMINAL else None)
        at, state = moved, to
        if to in TERMINAL:
            return


def _stage(run: Run, own: SpanContext, state: str, at: datetime, until: datetime, end: _End | None) -> Span:
    result = "success" if end is None else _RESULTS[end.state]
    attributes = _task(run, state, result)
    if end is not None and end.state in _WRONG:
        attributes["error.type"] = end.reason
    error = None if end is None else _wrong(end)
    return _child(run, own, _Part(f"state:{state}", state, at, until), attributes, error)


def _verified(told: Recorded, running: SpanContext) -> Iterator[Span]:
    """A span for each round whose claim of success was verified: from the claim to the verdict."""
    claimed: dict[Any, datetime] = {}
    for moment in told.timeline:
        number = moment.data.get("round")
        if moment.type == _CLAIMED:
            claimed[number] = moment.at
        elif moment.type in _JUDGED and number in claimed:
            result = _JUDGED[moment.type]
            attributes = _task(told.run, "verify", result) | {"lamp.run.round": int(number or 1)}
            error = "not verified" if result == "failure" else None
            part = _Part(f"verify:{number}", "verify", claimed[number], moment.at)
            yield _child(told.run, running, part, attributes, error)


def _worked(told: Recorded, running: SpanContext, end: _End) -> tuple[list[Span], int]:
    """The spans of its sessions, each followed by those of its tool calls, and how many calls have none."""
    spans: list[Span] = []
    tools = 0
    left_out = 0
    for session in told.sessions:
        until = max([session.ends or end.at, *(one.at for one in session.said), session.begins])
        context = SpanContext(running.trace, span_id(told.run.id, f"session:{session.id}"), sampled=running.sampled)
        spans.append(_session(told, running, context, session, until))
        calls = list(_tools(told.run, context, session, until))
        kept = calls[: max(MOST_TOOLS - tools, 0)]
        tools, left_out = tools + len(kept), left_out + len(calls) - len(kept)
        spans += kept
    return spans, left_out


def _session(told: Recorded, running: SpanContext, context: SpanContext, session: Worked, until: datetime) -> Span:
    in_force = told.run.in_force or {}
    used = [one.body for one in session.said if one.kind == "usage"]
    costs = [one["cost_usd"] for one in used if one.get("cost_usd") is not None]
    program = in_force.get("preset") or "agent"
    known: dict[str, Value | None] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": program,
        "gen_ai.request.model": in_force.get("model"),
        "gen_ai.conversation.id": session.program,
        "gen_ai.usage.input_tokens": _sum(used, "input_tokens"),
        "gen_ai.usage.output_tokens": _sum(used, "output_tokens"),
        "gen_ai.usage.cache_read.input_tokens": _sum(used, "cached_tokens") or None,
        "lamp.session.id": session.id,
        "lamp.session.cost_usd": sum(costs) if costs else None,
        "process.exit.code": session.exit_status,
    }
    return Span(f"invoke_agent {program}", context, running, session.begins, until, attributes=_given(known))


def _sum(used: Iterable[Mapping[str, Any]], key: str) -> int | None:
    found = [int(one.get(key) or 0) for one in used]
    return sum(found) if found else None


def _tools(run: Run, session: SpanContext, worked: Worked, until: datetime) -> Iterator[Span]:
    """A call that was never told to have ended is as long as its session."""
    ends: dict[str, list[Said]] = {}
    for one in worked.said:
        if one.kind == "tool_ended":
            ends.setdefault(str(one.body.get("tool_id")), []).append(one)
    for one in worked.said:
        if one.kind != "tool_started":
            continue
        call, name = str(one.body.get("tool_id")), str(one.body.get("name") or "tool")
        later = ends.get(call, [])
        ended = next((end for end in later if end.number > one.number), None)
        if ended is not None:
            later.remove(ended)
        known: dict[str, Value | None] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call or None,
        }
        failed = ended is not None and not ended.body.get("ok")
        context = SpanContext(session.trace, span_id(run.id, f"tool:{worked.id}:{one.number}"), sampled=session.sampled)
        yield Span(
            f"execute_tool {name}", context, session, one.at, until if ended is None else max(ended.at, one.at),
            attributes=_given(known | ({"error.type": "tool_failed"} if failed else {})),
            error="the tool failed" if failed else None,
        )  # fmt: skip


def _task(run: Run, name: str, result: str) -> dict[str, Value]:
    return {
        "cicd.pipeline.task.name": name,
        "cicd.pipeline.task.run.id": f"{run.id}/{name}",
        "cicd.pipeline.task.run.result": result,
    }


@record
class _Part:
    """A part of a run as a span: what its id follows from, and its name."""

    key: str
    name: str
    begins: datetime
    ends: datetime


def _child(
    run: Run, parent: SpanContext, part: _Part, attributes: Mapping[str, Value], error: str | None = None
) -> Span:
    context = SpanContext(parent.trace, span_id(run.id, part.key), sampled=parent.sampled)
    ends = max(part.ends, part.begins)
    return Span(part.name, context, parent, part.begins, ends, attributes=attributes, error=error)


def _given(known: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in known.items() if value is not None and value != ""}
