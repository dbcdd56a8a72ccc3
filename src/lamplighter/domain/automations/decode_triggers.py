"""Reads the triggers of a definition: the `gate` among its top-level keys, and `[[automation.triggers]]`."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from lamplighter.domain.automations.model import (
    CONDITION_TIMEOUT,
    EVENT_BATCH,
    Condition,
    Cooldown,
    Cron,
    Event,
    Gate,
    Manual,
    Schedule,
    Trigger,
    TriggerKind,
    Webhook,
)
from lamplighter.domain.automations.reading import Reader
from lamplighter.domain.delivery_fields import FILTERS, LEVELS, MIN_LEVEL
from lamplighter.kit.clock import from_rfc3339
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.schedule import WEEKDAYS, Daily, Hourly, Once, Weekly

LARGEST_BATCH = 1000

_KEYS: dict[TriggerKind, frozenset[str]] = {
    TriggerKind.COOLDOWN: frozenset({"interval"}),
    TriggerKind.CRON: frozenset({"schedule"}),
    TriggerKind.SCHEDULE: frozenset({"cadence", "hour", "minute", "weekday", "at"}),
    TriggerKind.CONDITION: frozenset({"check", "interval", "check_timeout"}),
    TriggerKind.EVENT: frozenset({"on", "match", "batch", "continue_by"}),
    TriggerKind.WEBHOOK: frozenset({"connection", "events", "match", "filter", "gather", "gather_most", "continue_by"}),
    TriggerKind.MANUAL: frozenset({"continue_by"}),
}
TRIGGER_KEYS = frozenset({"gate", "triggers"}).union(*_KEYS.values())

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PATH = re.compile(r"payload(\.[A-Za-z0-9_-]+)+|subject")
LONGEST_PATH = 200
_EVENT_TYPE = re.compile(r"\*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?")


class Cadence(StrEnum):
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    ONCE = "once"


_OF_CADENCE: dict[Cadence, frozenset[str]] = {
    Cadence.HOURLY: frozenset({"minute"}),
    Cadence.DAILY: frozenset({"hour", "minute"}),
    Cadence.WEEKLY: frozenset({"weekday", "hour", "minute"}),
    Cadence.ONCE: frozenset({"at"}),
}


def read_triggers(table: Reader, now: datetime | None) -> tuple[Trigger, ...]:
    """The triggers, the top-level `gate` first; problems are recorded in `table`."""
    triggers: list[Trigger] = []
    parts = table.parts("triggers")
    if table.has("gate") or not (parts or table.has("triggers")):
        _add(triggers, table, now, None)
    else:
        for name in sorted(TRIGGER_KEYS - {"gate", "triggers"}):
            if table.has(name):
                table.problem(name, "stands beside no `gate`; put it into its `[[automation.triggers]]` table")
    for part in parts:
        _add(triggers, part, now, part.text("id"))
        part.refuse_unknown(TRIGGER_KEYS - {"triggers"} | {"kind"})
    if not triggers and table.has("triggers") and not table.problems:
        table.problem("triggers", "is empty; an automation nobody fires has a `manual` one")
    return tuple(triggers)


def _add(triggers: list[Trigger], table: Reader, now: datetime | None, given: str | None) -> None:
    gate = _gate(table, now)
    if gate is None:
        return
    taken = {one.id for one in triggers}
    if given is not None and not _ID.fullmatch(given):
        table.problem("id", f"`{given}` is not a name; use letters, digits, `-` and `_`")
    if given is not None and given in taken:
        table.problem("id", f"`{given}` is the name of another trigger of this automation")
    triggers.append(Trigger(given or _free(gate.kind.value, taken), gate, _continue_by(table)))


def _continue_by(table: Reader) -> str | None:
    path = table.text("continue_by", longest=LONGEST_PATH)
    if path is not None and not _PATH.fullmatch(path):
        table.problem("continue_by", f"`{path}` is not the path of a value; write one such as `payload.issue.number`")
    return path


def _free(kind: str, taken: set[str]) -> str:
    number = 1
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    return name


def _gate(table: Reader, now: datetime | None) -> Gate | None:
    name = "gate" if table.has("gate") or not table.has("kind") else "kind"
    if not table.has(name):
        table.problem(name, f"is missing; it is one of {', '.join(TriggerKind)}")
        return None
    kind = table.choice(name, TriggerKind)
    if kind is None:
        return None
    _refuse_foreign(table, kind)
    return _READ[kind](table, now)


def _refuse_foreign(table: Reader, kind: TriggerKind) -> None:
    """Report keys of another kind of trigger, which would have no effect although something was meant by them."""
    for name in sorted(TRIGGER_KEYS - _KEYS[kind] - {"gate", "triggers"}):
        if table.has(name):
            owners = " or ".join(one.value for one, keys in _KEYS.items() if name in keys)
            table.problem(name, f"has no meaning for a {kind} trigger; it belongs to {owners}")


def _required(table: Reader, name: str, kind: TriggerKind, *, longest: int | None = None) -> str | None:
    if not table.has(name):
        table.problem(name, f"is missing; a {kind} trigger needs it")
    return table.text(name, longest=longest)


def _cooldown(table: Reader, _now: datetime | None) -> Gate | None:
    if not table.has("interval"):
        table.problem("interval", "is missing; a cooldown trigger needs it")
    interval = table.duration("interval")
    return None if interval is None else Cooldown(interval)


def _cron(table: Reader, _now: datetime | None) -> Gate | None:
    text = _required(table, "schedule", TriggerKind.CRON)
    expression = table.parsed("schedule", text, parse_cron) if text and text.strip() else None
    return None if expression is None else Cron(expression)


def _condition(table: Reader, _now: datetime | None) -> Gate | None:
    check = _required(table, "check", TriggerKind.CONDITION)
    interval, timeout = table.duration("interval"), table.duration("check_timeout")
    return None if check is None else Condition(check, interval, timeout or CONDITION_TIMEOUT)


def _event(table: Reader, _now: datetime | None) -> Gate | None:
    on = _required(table, "on", TriggerKind.EVENT)
    if on is not None and on.strip() and not _EVENT_TYPE.fullmatch(on):
        table.problem("on", f"`{on}` is not an event type; write one such as `bead.closed` or `bead.*`")
    match = _match(table)
    batch = table.integer("batch", 1, LARGEST_BATCH)
    return None if on is None else Event(on, match, batch or EVENT_BATCH)


def _webhook(table: Reader, _now: datetime | None) -> Gate | None:
    connection = _required(table, "connection", TriggerKind.WEBHOOK)
    events, match, wanted = table.texts("events"), _match(table), _match(table, "filter")
    for name in wanted:
        if name not in FILTERS:
            table.problem(f"filter.{name}", f"is no filter{did_you_mean(name, FILTERS)}")
    level = wanted.get(MIN_LEVEL, LEVELS[0])
    if level not in LEVELS:
        table.problem(f"filter.{MIN_LEVEL}", f"is one of {', '.join(LEVELS)}")
    gather, most = table.duration("gather"), table.duration("gather_most")
    if most is not None and gather is None:
        table.problem("gather_most", "goes with `gather` only, and there is none")
    elif most is not None and gather is not None and most < gather:
        table.problem("gather_most", "is shorter than `gather`")
    return None if connection is None else Webhook(connection, events, match, wanted, gather, most)


def _match(table: Reader, key: str = "match") -> Mapping[str, Any]:
    found = table.mapping(key)
    for path, wanted in found.items():
        for one in wanted if isinstance(wanted, list | tuple) else [wanted]:
            if not isinstance(one, str | int | float | bool):
                table.problem(f"{key}.{path}", "takes a text, a number, true or false, or a list of them")
    return found


def _schedule(table: Reader, now: datetime | None) -> Gate | None:
    if not table.has("cadence"):
        table.problem("cadence", f"is missing; it is one of {', '.join(Cadence)}")
    cadence = table.choice("cadence", Cadence)
    if cadence is not None:
        for name in sorted(_KEYS[TriggerKind.SCHEDULE] - _OF_CADENCE[cadence] - {"cadence"}):
            if table.has(name):
                table.problem(name, f"has no meaning for the cadence `{cadence}`; leave it out")
    if cadence is Cadence.ONCE:
        return _once(table, now)
    minute, hour = table.integer("minute", 0, 59) or 0, table.integer("hour", 0, 23) or 0
    match cadence:
        case Cadence.HOURLY:
            return Schedule(Hourly(minute))
        case Cadence.DAILY:
            return Schedule(Daily(hour, minute))
        case Cadence.WEEKLY:
            return Schedule(Weekly(_weekday(table), hour, minute))
        case _:
            return None


def _weekday(table: Reader) -> int:
    value = table.raw("weekday")
    if not isinstance(value, str):
        return table.integer("weekday", 0, 6) or 0
    names = [name.casefold() for name in WEEKDAYS]
    if value[:3].casefold() in names:
        return names.index(value[:3].casefold())
    table.problem("weekday", f"`{value}` is not a day of the week; write `mon`, or 0 for Sunday to 6 for Saturday")
    return 0


def _once(table: Reader, now: datetime | None) -> Gate | None:
    value = table.raw("at")
    if value is None:
        table.problem("at", "is missing; it is a time with its offset, such as `2026-12-01T09:00:00+01:00`")
        return None
    at = table.parsed("at", str(value), _pinned)  # TOML may give a datetime instead of a text
    if at is None:
        return None
    if now is not None and at < now.replace(second=0, microsecond=0):
        table.problem("at", f"`{value}` has passed")
    return Schedule(Once(at))


def _pinned(text: str) -> datetime:
    try:
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        example = "`2026-12-01T09:00:00+01:00`"
        raise ValueError(f"`{text}` is not a time with its offset; write one such as {example}") from None


def _manual(_table: Reader, _now: datetime | None) -> Gate:
    return Manual()


_READ: dict[TriggerKind, Callable[[Reader, datetime | None], Gate | None]] = {
    TriggerKind.COOLDOWN: _cooldown,
    TriggerKind.CRON: _cron,
    TriggerKind.SCHEDULE: _schedule,
    TriggerKind.CONDITION: _condition,
    TriggerKind.EVENT: _event,
    TriggerKind.WEBHOOK: _webhook,
    TriggerKind.MANUAL: _manual,
}
