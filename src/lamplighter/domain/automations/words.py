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
from lamplighter.kit.durations import format_duration
from lamplighter.kit.schedule import badge, human_schedule


def human_gate(gate: Gate, zone: ZoneInfo | None = None) -> str:  # noqa: PLR0911  one answer a kind
    match gate:
        case Cooldown(interval):
            return f"Every {format_duration(interval)}"
        case Cron(expression):
            return human_schedule(expression, zone)
        case Schedule(when):
            return human_schedule(when, zone)
        case Condition(check, interval):
            floor = f", at most every {format_duration(interval)}" if interval else ""
            return f"When `{check}` succeeds{floor}"
        case Event(on, match):
            return f"On {on}{' that matches' if match else ''}"
        case Webhook(connection, events):
            return f"On {' or '.join(events) or 'any delivery'} from {connection}"
        case Manual():
            return "Manual"


def gate_badge(gate: Gate) -> str:
    match gate:
        case Cron(expression):
            return badge(expression)
        case Schedule(when):
            return badge(when)
        case _:
            return gate.kind.value.capitalize()
