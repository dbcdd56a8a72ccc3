"""Spans of runs, sent by the SDK to a collector on this machine: what arrives, and what comes of one that is away."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from loops_city import Loops
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from structlog.testing import capture_logs
from test_agent_runs import finished

from lamplighter.adapters.traces.otlp import OtlpSink
from lamplighter.daemon.traces import FIRST_PAUSE, PACE, Handing, Traces
from lamplighter.domain.city.model import Configuration
from lamplighter.domain.delivery_fields import Provider
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.runs.tracing import context_of
from lamplighter.services import configurations
from lamplighter.services import traces as on_record
from lamplighter.services.deliveries.receiving import keep
from lamplighter.services.runs import review
from lamplighter.store.connections import ConnectionRow
from lamplighter.store.deliveries import DeliveryRow
from lamplighter.store.sessions import SessionEnd, SessionRow
from lamplighter.store.tx import Tx
from lamplighter.testing.clock import FakeClock
from lamplighter.testing.collector import Collected, Collector, collecting

SENT = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in ("OTEL_TRACES_SAMPLER", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    with collecting() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        yield found


@pytest.fixture
def sink(collector: Collector) -> Iterator[OtlpSink]:  # noqa: ARG001  it reads where to send from the environment
    found = OtlpSink()
    yield found
    found.close()


async def traces_of(loops: Loops, sink: OtlpSink) -> Traces:
    """From now on what ends is reported."""
    loops.parts.active.handed = Handing(sink)
    found = Traces(loops.store, loops.clock, sink, lambda: loops.parts.active.city)
    await found.tick()
    return found


def named(spans: list[Collected], name: str) -> Collected:
    (found,) = [one for one in spans if one.name == name]
    return found


async def test_a_run_that_a_delivery_fired_joins_its_trace_with_its_programs(
    loops: Loops, sink: OtlpSink, collector: Collector
) -> None:
    traces = await traces_of(loops, sink)
    now = loops.clock.now()
    hook = ConnectionRow("ci", Provider.BEARER, "", (), (), (), now, "ada")
    assert await loops.store.transact(lambda tx: tx.connections.add(hook))
    await loops.add("job", exec="echo $TRACEPARENT", gate="webhook", connection="ci")
    await loops.store.transact(keep, DeliveryRow("dlv_1", "ci", None, {"traceparent": SENT}, "{}", now), loops.context)
    await loops.parts.dispatcher.drain()
    assert await traces.tick() == 1
    (row,) = await loops.store.read(lambda tx: tx.runs.page(automation="job", limit=2))
    spans = collector.spans()
    own = named(spans, "RUN job")
    assert (own.trace, own.parent, own.kind) == ("a" * 32, "b" * 16, 2)
    assert row.output_tail == f"00-{own.trace}-{own.span}-01\n"
    running = named(spans, "running")
    assert (running.trace, running.parent) == (own.trace, own.span)
    assert own.attributes["cicd.pipeline.run.id"] == row.id
    assert own.attributes["lamp.trigger.kind"] == "webhook"
    assert own.resource["service.name"] == "lamplighter"
    assert await traces.tick() == 0
    assert len(collector.spans()) == len(spans)


AGENT = """
import json
say = lambda line: print(json.dumps(line), flush=True)
say({"type": "system", "subtype": "init", "session_id": "s-1"})
say({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]}})
say({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}})
say({"type": "result", "subtype": "success", "usage": {"input_tokens": 12, "output_tokens": 3}, "total_cost_usd": 0.5})
"""


async def test_an_agents_run_tells_its_session_its_tools_and_what_it_used(
    loops: Loops, sink: OtlpSink, collector: Collector
) -> None:
    traces = await traces_of(loops, sink)
    tools = loops.root / "bin"
    tools.mkdir()
    (tools / "said.py").write_text(AGENT)
    (tools / "claude").write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 1\necho $TRACEPARENT > {tools}/seen\n'
                                  f"exec python3 {tools}/said.py\n")  # fmt: skip
    (tools / "claude").chmod(0o755)
    home = loops.root / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text("{}")
    path = f"{tools}:/usr/local/bin:/usr/bin:/bin"
    asked = {"prompt": "Look.", "configuration": "own", "model": "opus", "mode": "full_access"}
    own = Configuration(name="own", preset="claude", env={"PATH": path, "HOME": str(home)})
    await loops.store.transact(configurations.sync, (own,), loops.clock.now())
    await loops.add("look", agent=asked)
    run = await loops.fire("look")
    row = await finished(loops, run)
    assert (row.state, row.reason) == (RunState.FAILED, "no_completion")
    assert await traces.tick() == 1
    spans = collector.spans()
    own, agent, tool = (named(spans, name) for name in ("RUN look", "invoke_agent claude", "execute_tool Bash"))
    assert (tools / "seen").read_text() == f"00-{own.trace}-{own.span}-01\n"
    assert agent.parent == named(spans, "running").span
    assert tool.parent == agent.span
    assert (agent.attributes["gen_ai.usage.input_tokens"], agent.attributes["gen_ai.usage.output_tokens"]) == (12, 3)
    assert agent.attributes["gen_ai.request.model"] == "opus"
    assert (own.error, own.attributes["cicd.pipeline.result"]) == ("no completion", "failure")
    assert own.begins <= agent.begins <= tool.begins <= tool.ends <= agent.ends


async def test_a_retry_is_linked_to_the_run_that_it_repeats(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    await loops.add("flaky", exec="exit 1")
    first = await loops.work("flaky")
    second = await loops.store.transact(review.retry, first.id, ctx=loops.context)
    await loops.parts.dispatcher.drain()
    assert await traces.tick() == 2
    before, after = [one for one in collector.spans() if one.name == "RUN flaky"]
    assert after.links == ((before.trace, before.span),)
    assert after.attributes["lamp.run.retries"] == first.id
    assert after.attributes["lamp.run.attempt"] == 1
    own = context_of(first.id, None)
    assert (before.trace, before.span) == (own.trace, own.span)
    assert second.id == after.attributes["cicd.pipeline.run.id"]


async def test_a_run_that_an_events_run_caused_is_linked_to_it(
    loops: Loops, sink: OtlpSink, collector: Collector
) -> None:
    traces = await traces_of(loops, sink)
    await loops.add("after", exec="true", gate="event", on="automation.completed", match={"automation": "before"})
    await loops.parts.scheduler.tick()
    await loops.add("before", exec="true")
    await loops.work("before")

    async def fired() -> bool:
        await loops.parts.scheduler.tick()
        return bool(await loops.store.read(lambda tx: tx.runs.page(automation="after", limit=2)))

    await loops.until(fired)
    await loops.parts.dispatcher.drain()
    assert await traces.tick() == 2
    spans = collector.spans()
    before, after = named(spans, "RUN before"), named(spans, "RUN after")
    assert after.links == ((before.trace, before.span),)


async def test_what_ended_before_anybody_asked_for_spans_is_not_reported(
    loops: Loops, sink: OtlpSink, collector: Collector
) -> None:
    await loops.add("early", exec="true")
    await loops.work("early")
    traces = await traces_of(loops, sink)
    assert await traces.tick() == 0
    assert collector.spans() == []
    await loops.store.transact(on_record.forget_position)
    await loops.work("early")
    assert await traces.tick() == 0  # begins anew: nobody asked while it ended


@pytest.mark.parametrize("status", [401, 404, 503, 0])
async def test_a_collector_that_is_away_is_told_and_gets_everything_later(
    loops: Loops, sink: OtlpSink, collector: Collector, status: int
) -> None:
    clock = FakeClock(loops.clock.now())
    traces = await traces_of(loops, sink)
    traces.clock = clock
    await loops.add("job", exec="true")
    collector.receiver.status = status
    row = await loops.work("job")
    assert row.state is RunState.SUCCEEDED
    clock.advance(loops.clock.now() - clock.now())
    assert await traces.tick() == 0
    assert traces.problem is not None
    assert collector.url in traces.problem
    assert str(status) in traces.problem or not status
    tried = len(collector.receiver.received)
    assert await traces.tick() == 0
    assert len(collector.receiver.received) == tried  # not before the pause is over
    collector.receiver.status = 200
    clock.advance(FIRST_PAUSE)
    assert await traces.tick() == 1
    assert traces.problem is None
    assert {one.name for one in collector.latest().values()} >= {"RUN job", "running"}


async def test_a_collector_that_hangs_holds_nothing_up(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    collector.answers.clear()
    await loops.add("job", exec="true")
    assert (await loops.work("job")).state is RunState.SUCCEEDED
    sending = asyncio.create_task(traces.tick())
    assert (await loops.work("job")).state is RunState.SUCCEEDED
    async with asyncio.timeout(60):
        assert await sending == 0
    assert traces.problem is not None
    collector.answers.set()


async def test_spans_that_are_refused_are_left_out_and_the_others_sent(
    loops: Loops, sink: OtlpSink, collector: Collector
) -> None:
    traces = await traces_of(loops, sink)
    judge = collector.receiver.judge
    collector.receiver.judge = lambda got: 400 if b"RUN bad" in got.body else 200
    await loops.add("bad", exec="true")
    await loops.add("good", exec="true")
    for name in ("good", "bad", "good"):
        await loops.work(name)
    assert await traces.tick() == 3
    collector.receiver.judge = judge
    alone = [one for one in collector.receiver.received if b"RUN bad" not in one.body]
    assert len(alone) == 2
    assert traces.problem is None


async def test_what_a_collector_takes_only_in_part_is_told(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    partly = ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    collector.receiver.says = ExportTraceServiceResponse(partial_success=partly).SerializeToString()
    await loops.add("job", exec="true")
    await loops.work("job")
    with capture_logs() as told:
        assert await traces.tick() == 1
    assert traces.problem is None
    (said,) = [one for one in told if one["event"] == "traces.partly_refused"]
    assert (said["spans"], said["why"]) == (2, "too old")
    collector.receiver.says = b"\xff taken, thank you"
    await loops.work("job")
    assert await traces.tick() == 1


async def test_a_run_whose_spans_cannot_be_made_is_left_out(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    await loops.add("good", exec="true")
    await loops.add("odd", exec="true")
    await loops.work("good")
    row = await loops.work("odd")

    def odd(tx: Tx) -> None:
        tx.sessions.add(SessionRow("ses_odd", "odd", None, row.id, "subprocess", "here", 1, loops.clock.now()))
        tx.sessions.end("ses_odd", SessionEnd(loops.clock.now(), "exited"))
        tx.transcripts.add("ses_odd", 1, [("usage", {"input_tokens": "many"})], loops.clock.now())

    await loops.store.transact(odd)
    assert await traces.tick() == 2
    assert [one.name for one in collector.spans() if one.kind == 2] == ["RUN good"]
    assert traces.problem is None


async def test_senders_and_settings_that_want_no_spans_get_none(
    loops: Loops, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "town")
    sink = OtlpSink()
    traces = await traces_of(loops, sink)
    await loops.add("job", exec="echo $TRACEPARENT")
    row = await loops.work("job")
    assert row.output_tail.endswith("-00\n")
    assert await traces.tick() == 1
    assert collector.spans() == []
    handed = Handing(sink)
    assert handed("run_1", {"traceparent": SENT})["TRACEPARENT"].endswith("-01")  # its sender wants it
    dropped = f"{SENT[:-2]}00"
    assert handed("run_1", {"traceparent": dropped}) == {"TRACEPARENT": dropped}
    sink.close()


async def test_what_ended_too_long_ago_is_left_out(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    await loops.add("old", exec="true")
    await loops.work("old")
    clock = FakeClock(loops.clock.now() + on_record.KEPT + timedelta(minutes=1))
    traces.clock = clock
    assert await traces.tick() == 0
    assert collector.spans() == []
    assert await loops.store.read(lambda tx: tx.cities.traced()) == await loops.store.read(lambda tx: tx.events.head())


async def test_the_address_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@localhost:4318/")
    sink = OtlpSink()
    assert sink.address == "http://localhost:4318/v1/traces"
    sink.close()


async def test_the_loop_wakes_by_events_and_paces_itself(loops: Loops, sink: OtlpSink, collector: Collector) -> None:
    traces = await traces_of(loops, sink)
    traces.listen(loops.wakes)
    clock = traces.clock = FakeClock(loops.clock.now())
    watching = asyncio.create_task(traces.loop())
    await clock.sleepers()
    clock.advance(PACE)
    await clock.sleepers()
    await loops.add("job", exec="true")
    await loops.work("job")

    async def sent() -> bool:
        clock.advance(PACE)
        return bool(collector.spans())

    await loops.until(sent)
    watching.cancel()
    await asyncio.wait({watching})
