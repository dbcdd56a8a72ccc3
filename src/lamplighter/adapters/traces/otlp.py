"""Spans by OTLP over HTTP, with the OpenTelemetry SDK, which reads its own settings from the environment.

The SDK makes of ours what it would make of spans that it measured itself: its settings for sampling, resources and
limits hold. It sends in a thread of its own, which the process does not wait for when it ends.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Link, NonRecordingSpan, SpanKind, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import SpanContext as SdkContext

from lamplighter import __version__
from lamplighter.domain.runs import spans as ours
from lamplighter.domain.runs.spans import Span
from lamplighter.domain.runs.tracing import SpanContext
from lamplighter.kit import log
from lamplighter.kit.errors import Unavailable
from lamplighter.kit.on_demand import load
from lamplighter.ports.traces import SpansRefused

NAME, UNKNOWN = "lamplighter", "unknown_service"
NEVER_TAKEN = frozenset({400, 413, 415, 422})
"""Answers that say that the request itself is wrong: the same would be answered to it again."""
_KINDS = {ours.SpanKind.SERVER: SpanKind.SERVER, ours.SpanKind.INTERNAL: SpanKind.INTERNAL}
_UNREADABLE = load("google.protobuf.message:DecodeError")  # a library without types
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OtlpSink:
    """Raises ValueError or OSError for settings that the SDK cannot use."""

    def __init__(self) -> None:
        _quiet()
        self._session = _Session()
        exporter = OTLPSpanExporter(session=self._session)
        self.address = _shown(exporter._endpoint)  # noqa: SLF001  it offers no other way to learn it
        self._exporter: SpanExporter = exporter
        self._ids = _GivenIds()
        self._made = _Made()
        self._provider = TracerProvider(resource=_resource(), id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(self._made)
        self._tracer = self._provider.get_tracer(NAME, __version__)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def samples(self, context: SpanContext, sender: SpanContext | None, name: str) -> bool:
        decided = self._provider.sampler.should_sample(_within(sender), int(context.trace, 16), name, SpanKind.SERVER)
        return decided.decision is Decision.RECORD_AND_SAMPLE

    async def send(self, spans: Sequence[Span]) -> None:
        await self._in_thread(lambda: self._send(spans))

    def close(self) -> None:
        self._jobs.put(None)
        self._exporter.shutdown()

    # ── in the thread ─────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, spans: Sequence[Span]) -> None:
        made = self._made_of(spans)
        if not made:  # none of these traces is sampled
            return
        self._session.status, self._session.why = 0, ""
        if self._exporter.export(made) is SpanExportResult.SUCCESS:
            return
        status, why = self._session.status, self._session.why
        if status in NEVER_TAKEN or not (status or why):  # without either they were not even sent
            answered = f"it answers {status}" if status else "they cannot be put into a request"
            raise SpansRefused(f"{self.address} does not take the spans of runs: {answered}.")
        raise Unavailable(
            f"{self.address} does not take the spans of runs: {why or f'it answers {status}'}.",
            hint="Runs are not held up by it; their spans are sent once it takes them.",
        )

    def _made_of(self, spans: Sequence[Span]) -> list[ReadableSpan]:
        wanted = True
        try:
            for span in spans:
                if span.kind is ours.SpanKind.SERVER:  # a run's own: those that follow belong to it
                    wanted = self.samples(span.context, span.parent, span.name)
                if wanted:
                    self._make(span)
        except (ValueError, TypeError, OverflowError) as error:
            self._made.taken()
            raise SpansRefused(f"Spans of runs cannot be made: {error}.") from error
        return self._made.taken()

    def _make(self, span: Span) -> None:
        self._ids.next = (int(span.context.trace, 16), int(span.context.span, 16))
        begun = self._tracer.start_span(
            span.name,
            context=_within(span.parent),
            kind=_KINDS[span.kind],
            attributes=dict(span.attributes),
            links=[Link(_sdk(one)) for one in span.links],
            start_time=_nanoseconds(span.begins),
        )
        for name, at in span.events:
            begun.add_event(name, timestamp=_nanoseconds(at))
        if span.error is not None:
            begun.set_status(Status(StatusCode.ERROR, span.error))
        begun.end(end_time=_nanoseconds(span.ends))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        """Not a thread of the event loop's own: that would be waited for when the process ends."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(error)

        def job() -> None:
            found: BaseException | None = None
            try:
                work()
            except BaseException as error:  # noqa: BLE001  it is raised where it is awaited
                found = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, found)

        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
            self._thread.start()
        self._jobs.put(job)
        await answer

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class _GivenIds(IdGenerator):
    """The ids that the next span is to have."""

    def __init__(self) -> None:
        self.next = (0, 0)

    def generate_trace_id(self) -> int:
        return self.next[0]

    def generate_span_id(self) -> int:
        return self.next[1]


class _Made(SpanProcessor):
    """Keeps the spans that were made and are to be sent."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._spans.append(span)

    def taken(self) -> list[ReadableSpan]:
        found, self._spans = self._spans, []
        return found


class _Session(requests.Session):
    """Keeps how the last request went."""

    status = 0
    why = ""

    def request(self, *asked: Any, **more: Any) -> requests.Response:
        self.status, self.why = 0, ""
        try:
            answer = super().request(*asked, **more)
        except requests.Timeout:
            self.why = "no answer came in time"
            raise
        except (requests.RequestException, OSError) as error:
            self.why = _cause(error)
            raise
        self.status = answer.status_code
        if answer.ok:
            _tell_partly_refused(answer.content)
        return answer


def _cause(error: BaseException) -> str:
    """What the system said in the end, where it said something."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            return at.strerror
        at = at.__cause__ or at.__context__
    return "it does not answer"


def _tell_partly_refused(body: bytes) -> None:
    told = ExportTraceServiceResponse()
    try:
        told.ParseFromString(body)
    except _UNREADABLE:  # some collectors answer in JSON, or in words
        return
    refused = told.partial_success
    if refused.rejected_spans:
        log.get().warning("traces.partly_refused", spans=refused.rejected_spans, why=refused.error_message[:300])


def _quiet() -> None:
    """What the exporter logs is told by us, once."""
    found = logging.getLogger("opentelemetry")
    found.handlers, found.propagate = [logging.NullHandler()], False


def _shown(endpoint: str) -> str:
    """Without the name and password that it may hold."""
    found = urlsplit(endpoint)
    return urlunsplit((found.scheme, found.netloc.rpartition("@")[2], found.path, "", ""))


def _resource() -> Resource:
    """As the environment names it, else by our own name."""
    found = Resource.create({"service.version": __version__})
    named = not str(found.attributes.get(SERVICE_NAME, "")).startswith(UNKNOWN)
    return found if named else found.merge(Resource({SERVICE_NAME: NAME}))


def _within(parent: SpanContext | None) -> Context:
    return Context() if parent is None else set_span_in_context(NonRecordingSpan(_sdk(parent)), Context())


def _sdk(context: SpanContext) -> SdkContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    return SdkContext(int(context.trace, 16), int(context.span, 16), is_remote=True, trace_flags=flags)


def _nanoseconds(at: datetime) -> int:
    passed = at - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000
