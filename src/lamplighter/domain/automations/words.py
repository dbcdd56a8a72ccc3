"""Describes triggers in plain language: a phrase for a row, a badge for a card."""

from zoneinfo import ZoneInfo

from lamplighter.domain.automations.model import (
    Condition,
    Cooldown,
    Cron,
    Event,
    Gate,
    Manual,
    Schedule,
    Webhook,
)
from lamplighter.kit.durations import spoken
from lamplighter.kit.schedule import Once, When, badge, expression_of, human_schedule


def human_gate(gate: Gate, zone: ZoneInfo | None = None, *, named: str | None = None) -> str:  # noqa: PLR0911  one answer a kind
    """`named` is the zone of its times where that must be said, because it is not the city's."""
    match gate:
        case Cooldown(interval):
            return f"Every {_ONE.get(spoken(interval), spoken(interval))}"
        case Cron(expression):
            return _within(named, human_schedule(expression, zone), expression)
        case Schedule(when):
            return _within(named, human_schedule(when, zone), when)
        case Condition(check, interval):
            floor = f", at most every {_ONE.get(spoken(interval), spoken(interval))}" if interval else ""
            return f"When `{check}` succeeds{floor}"
        case Event(on, match):
            return f"On {on}{' that matches' if match else ''}"
        case Webhook(connection, events):
            return f"On {' or '.join(events) or 'any delivery'} from {connection}"
        case Manual():
            return "Manual"


_ONE = {"1 d": "day", "1 h": "hour", "1 min": "minute", "1 s": "second"}


def _within(named: str | None, told: str, when: When) -> str:
    """With the zone, unless the times are the same in each: every so many minutes, or a moment that names its own."""
    if named is None or isinstance(when, Once) or expression_of(when).every_hour:
        return told
    return f"{told} ({named})"


def gate_badge(gate: Gate) -> str:
    match gate:
        case Cron(expression):
            return badge(expression)
        case Schedule(when):
            return badge(when)
        case _:
            return gate.kind.value.capitalize()
