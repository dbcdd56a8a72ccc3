"""The trace that a run belongs to, as W3C Trace Context writes it: the sender's or one of its own, and what ids it has.

A run's ids follow from the run's own id, so that whoever needs them has the same, before the run's spans are reported
and after.
"""

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from lamplighter.kit.records import record

HEADER, VARIABLE = "traceparent", "TRACEPARENT"
_SOUND = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@record
class SpanContext:
    """A span as others refer to it; the ids are hexadecimal digits."""

    trace: str
    span: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace}-{self.span}-{int(self.sampled):02x}"


Handed = Callable[[str, Mapping[str, Any]], dict[str, str]]
"""The variables that programs of a run join its trace with, from the run's id and its trigger."""


def is_sound(traceparent: str) -> bool:
    """Whether it names a trace and a span; one of a later version may say more after them."""
    return _read(traceparent) is not None


def variables(trigger: Mapping[str, Any] | None) -> dict[str, str]:
    """The variable with which programs join the trace of what fired their run; none where that told of no trace."""
    found = (trigger or {}).get(HEADER)
    return {VARIABLE: found} if isinstance(found, str) and is_sound(found) else {}


def senders(_run: str, trigger: Mapping[str, Any]) -> dict[str, str]:
    """What programs are handed where the spans of runs are not reported: the sender's own span."""
    return variables(trigger)


def sender_of(told: Mapping[str, Any] | None) -> SpanContext | None:
    """The span that a trigger, or one of several events that fired a run, says it belongs to."""
    found = (told or {}).get(HEADER)
    return _read(found) if isinstance(found, str) else None


def context_of(run: str, sender: SpanContext | None) -> SpanContext:
    """The run's own span: in its sender's trace, else in a trace of its own."""
    trace = sha256(f"trace:{run}".encode()).hexdigest()[:32] if sender is None else sender.trace
    return SpanContext(trace, span_id(run, "run"), sampled=sender is None or sender.sampled)


def unsampled(context: SpanContext) -> SpanContext:
    return SpanContext(context.trace, context.span, sampled=False)


def span_id(run: str, part: str) -> str:
    return sha256(f"{run}:{part}".encode()).hexdigest()[:16]


def _read(traceparent: str) -> SpanContext | None:
    found = _SOUND.fullmatch(traceparent)
    if found is None or traceparent.startswith("ff") or (traceparent.startswith("00") and found[4]):
        return None
    if not found[1].strip("0") or not found[2].strip("0"):
        return None
    return SpanContext(found[1], found[2], sampled=bool(int(found[3], 16) & 1))
