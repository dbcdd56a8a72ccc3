"""The spans that are made of what is on record of a run."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.spans import MOST_TOOLS, Moment, Recorded, Said, Span, SpanKind, Worked, spans_of
from lamplighter.domain.runs.tracing import SpanContext, context_of, sender_of, span_id

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SENDER = SpanContext("a" * 32, "b" * 16)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(**more: Any) -> Run:
    return Run(**({"id": "run_1", "automation": "nightly", "state": RunState.SUCCEEDED, "created_at": START} | more))


def moves(*steps: tuple[float, str], reason: str = "") -> list[Moment]:
    found = [Moment(at(when), "status_transition" if number else "run_created", state) for number, (when, state)
             in enumerate(steps)]  # fmt: skip
    last = found[-1]
    return [*found[:-1], Moment(last.at, last.type, last.to, {"reason": reason} if reason else {})]


AGENT = moves((0, "queued"), (1, "enriching"), (1.5, "ready"), (2, "running"), (9, "succeeded"))


def named(spans: list[Span], name: str) -> Span:
    (found,) = [one for one in spans if one.name == name]
    return found


def test_a_run_and_its_stages_are_one_trace_in_which_each_stage_belongs_to_the_run() -> None:
    first, *stages = spans_of(Recorded(run(), None, AGENT))
    assert (first.name, first.kind, first.parent) == ("RUN nightly", SpanKind.SERVER, None)
    assert (first.begins, first.ends, first.error) == (START, at(9), None)
    assert first.attributes["cicd.pipeline.result"] == "success"
    assert [(one.name, one.begins, one.ends) for one in stages] == [
        ("queued", at(0), at(1)), ("enriching", at(1), at(1.5)), ("ready", at(1.5), at(2)), ("running", at(2), at(9)),
    ]  # fmt: skip
    assert {one.parent for one in stages} == {first.context}
    assert len({one.context.span for one in (first, *stages)}) == 5
    assert {one.context.trace for one in (first, *stages)} == {first.context.trace}


def test_the_ids_follow_from_the_run_alone() -> None:
    once, again = spans_of(Recorded(run(), None, AGENT)), spans_of(Recorded(run(summary="told late"), None, AGENT))
    assert [one.context for one in once] == [one.context for one in again]
    assert spans_of(Recorded(run(id="run_2"), None, AGENT))[0].context != once[0].context


def test_a_run_joins_the_trace_of_its_sender() -> None:
    first, *others = spans_of(Recorded(run(), SENDER, AGENT))
    assert first.parent == SENDER
    assert first.context == context_of("run_1", SENDER)
    assert {one.context.trace for one in others} == {SENDER.trace}


@pytest.mark.parametrize(
    ("state", "reason", "result", "error"),
    [
        ("failed", "exit_3", "failure", "exit 3"),
        ("timed_out", "deadline_exceeded", "timeout", "deadline exceeded"),
        ("canceled", "canceled", "cancellation", None),
        ("skipped", "nothing_to_do", "skip", None),
        ("needs_human", "question", "needs_human", None),
    ],
)
def test_each_end_has_its_result_and_failures_are_errors(
    state: str, reason: str, result: str, error: str | None
) -> None:
    told = Recorded(run(error="secret words"), None, moves((0, "ready"), (0, "running"), (3, state), reason=reason))
    first, running = spans_of(told)
    assert (first.attributes["cicd.pipeline.result"], first.error) == (result, error)
    assert (running.name, running.attributes["cicd.pipeline.task.run.result"], running.error) == (
        "running", result, error,
    )  # fmt: skip
    assert first.attributes.get("error.type") == (reason if error else None)
    assert "secret words" not in str([first, running])


def test_a_run_that_a_person_resolved_is_told_as_it_ended_first() -> None:
    timeline = [*moves((0, "ready"), (0, "running"), (3, "failed"), reason="exit_1"),
                Moment(at(900), "manual_resolution", "succeeded", {"reason": "manual_resolution:fixed"})]  # fmt: skip
    first = spans_of(Recorded(run(), None, timeline))[0]
    assert (first.ends, first.attributes["lamp.run.state"]) == (at(3), "failed")


def test_one_that_never_ran_has_the_time_it_waited_and_one_that_has_not_ended_has_no_spans() -> None:
    told = spans_of(Recorded(run(), None, moves((0, "queued"), (4, "canceled"))))
    assert [one.name for one in told] == ["RUN nightly", "queued"]
    assert spans_of(Recorded(run(), None, moves((0, "queued"), (1, "enriching")))) == []


def test_each_round_that_was_verified_is_a_span() -> None:
    rounds = [
        Moment(at(3), "completion_claimed", "running", {"round": 1}),
        Moment(at(4), "verify_failed", "running", {"round": 1, "why": "made of words"}),
        Moment(at(6), "completion_claimed", "running", {"round": 2}),
        Moment(at(8), "verify_passed", "running", {"round": 2}),
    ]
    spans = spans_of(Recorded(run(round=2), None, [*AGENT[:-1], *rounds, AGENT[-1]]))
    running = named(spans, "running")
    found = [one for one in spans if one.name == "verify"]
    assert [(one.begins, one.ends, one.error) for one in found] == [
        (at(3), at(4), "not verified"), (at(6), at(8), None),
    ]  # fmt: skip
    assert {one.parent for one in found} == {running.context}
    assert len({one.context.span for one in found}) == 2


def session(*said: Said, **more: Any) -> Worked:
    return Worked(**({"id": "ses_1", "begins": at(2), "ends": at(10), "program": "p-1", "said": said} | more))


def tool(number: int, when: float, kind: str, call: str, **body: Any) -> Said:
    return Said(number, at(when), f"tool_{kind}", {"tool_id": call, **body})


def test_a_session_tells_what_it_used_and_its_tools_belong_to_it() -> None:
    worked = session(
        tool(1, 3, "started", "t1", name="Bash", detail="rm -rf secret"),
        Said(2, at(3), "text", {"text": "secret"}),
        tool(3, 4, "ended", "t1", ok=True, detail="secret"),
        Said(4, at(4), "usage", {"input_tokens": 10, "output_tokens": 2, "cached_tokens": 7, "cost_usd": 0.5}),
        tool(5, 5, "started", "t2", name="Edit"),
        tool(6, 6, "ended", "t2", ok=False),
        tool(7, 7, "started", "t3", name="Read"),
        Said(8, at(8), "usage", {"input_tokens": 1, "output_tokens": 1, "cost_usd": None}),
        exit_status=0,
    )
    spans = spans_of(Recorded(run(in_force={"preset": "claude", "model": "opus"}), None, AGENT, [worked]))
    agent = named(spans, "invoke_agent claude")
    assert agent.parent == named(spans, "running").context
    assert (agent.begins, agent.ends) == (at(2), at(10))
    assert agent.attributes == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "claude", "gen_ai.request.model": "opus",
        "gen_ai.conversation.id": "p-1", "gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 7, "lamp.session.id": "ses_1", "lamp.session.cost_usd": 0.5,
        "process.exit.code": 0,
    }  # fmt: skip
    tools = [one for one in spans if one.name.startswith("execute_tool")]
    assert [(one.name, one.begins, one.ends, one.error) for one in tools] == [
        ("execute_tool Bash", at(3), at(4), None),
        ("execute_tool Edit", at(5), at(6), "the tool failed"),
        ("execute_tool Read", at(7), at(10), None),
    ]
    assert {one.parent for one in tools} == {agent.context}
    assert "secret" not in str(spans)


def test_calls_beyond_the_most_are_counted() -> None:
    said = [tool(number, 3, "started", f"t{number}", name="Bash") for number in range(1, MOST_TOOLS + 12)]
    spans = spans_of(Recorded(run(), None, AGENT, [session(*said)]))
    assert sum(one.name == "execute_tool Bash" for one in spans) == MOST_TOOLS
    assert spans[0].attributes["lamp.run.tools_left_out"] == 11


def test_the_page_of_a_run_is_named_where_the_city_has_an_address() -> None:
    told = Recorded(run(), None, AGENT, url="https://lamp.example.org/runs/run_1", city="town")
    assert spans_of(told)[0].attributes["cicd.pipeline.run.url.full"] == "https://lamp.example.org/runs/run_1"
    assert "cicd.pipeline.run.url.full" not in spans_of(Recorded(run(), None, AGENT))[0].attributes


def test_a_sender_is_read_from_what_it_sent() -> None:
    assert sender_of({"traceparent": f"00-{SENDER.trace}-{SENDER.span}-01"}) == SENDER
    unsampled = sender_of({"traceparent": f"00-{SENDER.trace}-{SENDER.span}-00"})
    assert unsampled is not None
    assert not unsampled.sampled
    assert not context_of("run_1", unsampled).sampled
    assert str(SENDER) == f"00-{'a' * 32}-{'b' * 16}-01"
    assert len(span_id("run_1", "x")) == 16
