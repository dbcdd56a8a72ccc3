"""Forecasts what would fire in a span of time if nothing else happened."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from zoneinfo import ZoneInfo

from lamplighter.domain.automations.model import Automation, Cooldown, Cron, Gate, Schedule
from lamplighter.domain.automations.state import TriggerState, when_of
from lamplighter.kit.schedule import next_runs


@dataclass(frozen=True, order=True)
class Firing:
    at: datetime
    automation: str
    trigger: str


def forecast(
    automations: Iterable[Automation],
    zone_of: Callable[[Automation], ZoneInfo],
    states: Mapping[tuple[str, str], TriggerState],
    span: tuple[datetime, datetime],
) -> Iterator[Firing]:
    """Firings in order of time; `states` is keyed by scoped name and trigger id.

    Conditions, events and webhook deliveries cannot be predicted and are left out.
    """
    rows = []
    for automation in automations:
        for trigger in automation.triggers:
            state = states.get((automation.scoped_name, trigger.id))
            times = _times(trigger.gate, state, zone_of(automation), span)
            rows.append(_named(times, automation.scoped_name, trigger.id))
    return merge(*rows)


def _named(times: Iterator[datetime], automation: str, trigger: str) -> Iterator[Firing]:
    return (Firing(at, automation, trigger) for at in times)


def _times(
    gate: Gate, state: TriggerState | None, zone: ZoneInfo, span: tuple[datetime, datetime]
) -> Iterator[datetime]:
    after, until = span
    if isinstance(gate, Cron | Schedule):
        yield from next_runs(after, when_of(gate), zone, until)
    if isinstance(gate, Cooldown):
        last = state.last_fired_at if state else None
        at = after if last is None else max(last + gate.interval, after)
        while at <= until:
            yield at
            at += gate.interval
