"""Which events open an event gate: by type and by payload, without loops."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from lamplighter.domain.automations.model import Event, Webhook

DEEPEST_CHAIN = 8


@dataclass(frozen=True)
class SeenEvent:
    """`causes` are the automations whose runs led to the event, the most recent first."""

    seq: int
    type: str
    at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Taken:
    """The events one run receives, oldest first, the cursor after firing it, and how many were left out as loops."""

    events: tuple[SeenEvent, ...]
    cursor: int
    guarded: int = 0

    @property
    def causes(self) -> tuple[str, ...]:
        """The longest chain among the events; the run passes it on with its own automation's name in front."""
        return max((one.causes for one in self.events), key=len, default=())


def take(gate: Event, cursor: int, events: Iterable[SeenEvent], automation: str) -> Taken:
    """Up to `batch` matching events after the cursor; events that do not match or would loop are skipped for good."""
    found: list[SeenEvent] = []
    guarded = 0
    for event in events:
        if event.seq <= cursor:
            continue
        if matches(gate, event):
            if len(found) == gate.batch:
                break
            if loops(event, automation):
                guarded += 1
            else:
                found.append(event)
        cursor = event.seq
    return Taken(tuple(found), cursor, guarded)


def matches(gate: Event, event: SeenEvent) -> bool:
    return type_matches(gate.on, event.type) and payload_matches(gate.match, event.payload)


def loops(event: SeenEvent, automation: str) -> bool:
    """Whether this automation led to the event, or its chain is too long; such an event must not open the gate."""
    return automation in event.causes or len(event.causes) >= DEEPEST_CHAIN


def type_matches(pattern: str, event_type: str) -> bool:
    """Exact, or by family: `bead.*` matches every type that begins with `bead.`, `*` matches every type."""
    if pattern == "*":
        return True
    if pattern.endswith(".*"):
        return event_type.startswith(pattern[:-1])
    return pattern == event_type


def delivery_matches(gate: Webhook, event_type: str, payload: Mapping[str, Any]) -> bool:
    named = not gate.events or any(type_matches(one, event_type) for one in gate.events)
    return named and payload_matches(gate.match, payload)


def payload_matches(wanted: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Whether every path has its wanted value. A list in `wanted` gives alternatives; texts may use shell wildcards."""
    return all(_one_matches(expected, _at(payload, path)) for path, expected in wanted.items())


def _one_matches(expected: Any, actual: list[Any]) -> bool:
    choices = expected if isinstance(expected, list | tuple) else [expected]
    return any(_equal(choice, value) for choice in choices for value in actual)


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and isinstance(actual, str):
        return fnmatchcase(actual, expected)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _at(payload: Any, path: str) -> list[Any]:
    """The values at a dotted path; a list along the path, or at its end, contributes each of its members."""
    values = [payload]
    for step in path.split("."):
        values = [value[step] for value in _spread(values) if isinstance(value, Mapping) and step in value]
    return _spread(values)


def _spread(values: Iterable[Any]) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, list | tuple) else [value])]
