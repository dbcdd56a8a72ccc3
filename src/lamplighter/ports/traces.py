"""Sends spans to whoever collects them."""

from collections.abc import Sequence
from typing import Protocol

from lamplighter.domain.runs.spans import Span
from lamplighter.domain.runs.tracing import SpanContext
from lamplighter.kit.errors import LampError


class SpansRefused(LampError):
    """Whoever collects them does not take these spans, and never will."""


class SpanSink(Protocol):
    @property
    def address(self) -> str:
        """Where spans go, as people may see it."""
        ...

    def samples(self, context: SpanContext, sender: SpanContext | None, name: str) -> bool:
        """Whether the spans of that trace are to be reported."""
        ...

    async def send(self, spans: Sequence[Span]) -> None:
        """Send spans; may be repeated with the same ones. Raises Unavailable, SpansRefused."""
        ...

    def close(self) -> None:
        """Break off what is under way; it need not have ended when this returns."""
        ...
