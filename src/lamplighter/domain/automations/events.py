"""Which events open an event gate: by type and by payload, without loops."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from lamplighter.domain.automations.model import Event, Webhook
from lamplighter.domain.delivery_fields import MIN_LEVEL, below_level
from lamplighter.kit.records import record

DEEPEST_CHAIN = 8
LONGEST_SAID = 80


@record
class SeenEvent:
    """`causes` are the automations whose runs led to the event, the most recent first."""

    seq: int
    type: str
    at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = ()


@record
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
    return chain_loops(event.causes, automation)


def type_matches(pattern: str, event_type: str) -> bool:
    """Exact, or by family: `bead.*` matches every type that begins with `bead.`, `*` matches every type."""
    if pattern == "*":
        return True
    if pattern.endswith(".*"):
        return event_type.startswith(pattern[:-1])
    return pattern == event_type


def undelivered(gate: Webhook, event_type: str, payload: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """Which rule of the trigger keeps a delivery from it, in words; empty if none does.

    `pull_request` means every event of that kind, as `pull_request.*` does.
    """
    named = [one for one in gate.events if type_matches(one, event_type) or event_type.startswith(f"{one}.")]
    if gate.events and not named:
        return f"events: `{event_type}` is none of {', '.join(gate.events)}"
    wanted = {name: value for name, value in gate.filter.items() if name != MIN_LEVEL}
    if told := unmatched(wanted, fields):
        return f"filter: {told}"
    if MIN_LEVEL in gate.filter and below_level(gate.filter[MIN_LEVEL], fields.get("level")):
        return f"filter: `level` is {fields.get('level')}; wanted is at least {gate.filter[MIN_LEVEL]}"
    told = unmatched(gate.match, payload)
    return f"match: {told}" if told else ""


def chain_loops(causes: Sequence[str], automation: str) -> bool:
    """Whether this automation is among the causes of something, or their chain is too long."""
    return automation in causes or len(causes) >= DEEPEST_CHAIN


def payload_matches(wanted: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Whether every path has its wanted value. A list in `wanted` gives alternatives; texts may use shell wildcards."""
    return all(_one_matches(expected, _at(payload, path)) for path, expected in wanted.items())


def unmatched(wanted: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """The first path that has not its wanted value, in words; empty if every one has."""
    for path, expected in wanted.items():
        actual = _at(payload, path)
        if not _one_matches(expected, actual):
            has = "is not there" if not actual else f"is {', '.join(_said(one) for one in actual[:3])}"
            return f"`{path}` {has}; wanted is {_said(expected)}"
    return ""


def _said(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_SAID else f"{text[:LONGEST_SAID]}…"


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
