"""A collector of spans on this machine: takes OTLP over HTTP as a real one does, and keeps what it was sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lamplighter.testing.webhooks import Received, Receiver, receiving

PATH = "/v1/traces"


@dataclass(frozen=True)
class Collected:
    """A span as it was sent; ids are hexadecimal digits."""

    name: str
    trace: str
    span: str
    parent: str
    kind: int
    begins: int
    ends: int
    attributes: dict[str, Any]
    events: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    error: str | None
    resource: dict[str, Any] = field(repr=False)


@dataclass
class Collector:
    receiver: Receiver
    answers: Event
    """Cleared, it takes requests and answers none."""

    @property
    def url(self) -> str:
        return self.receiver.url

    def spans(self) -> list[Collected]:
        """All that was sent so far, in order."""
        return [span for one in list(self.receiver.received) for span in _read(one)]

    def latest(self) -> dict[str, Collected]:
        """The spans by their ids, as a collector has them to which some were sent twice."""
        return {f"{one.trace}:{one.span}": one for one in self.spans()}


@contextmanager
def collecting() -> Iterator[Collector]:
    with receiving() as receiver:
        collector = Collector(receiver, Event())
        collector.answers.set()
        receiver.status = 200

        def judge(_got: Received) -> int:
            collector.answers.wait(60)
            return receiver.status

        receiver.judge = judge
        try:
            yield collector
        finally:
            collector.answers.set()


def _read(got: Received) -> list[Collected]:
    assert got.path == PATH, got.path
    assert got.headers["content-type"] == "application/x-protobuf"
    request = ExportTraceServiceRequest()
    request.ParseFromString(got.body)
    return [
        Collected(
            name=span.name,
            trace=span.trace_id.hex(),
            span=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            kind=span.kind,
            begins=span.start_time_unix_nano,
            ends=span.end_time_unix_nano,
            attributes=_values(span.attributes),
            events=tuple(event.name for event in span.events),
            links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            error=span.status.message if span.status.code == 2 else None,
            resource=_values(part.resource.attributes),
        )
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
