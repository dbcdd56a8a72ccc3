"""Reads from an error when a limit is lifted, in the many forms in which providers and programs tell it."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from lamplighter.kit.schedule import zone_named

FURTHEST = timedelta(days=40)
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_ISO = re.compile(r"\b(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)")
_EPOCH = re.compile(r"(?:\||reset\w*[\"']?\s*(?:at|time|:|=)?\s*[:=]?\s*)(1\d{9})(?:\d{3})?\b", re.IGNORECASE)
_SPAN = re.compile(
    r"(?:in|after|wait|resets?[ _-]?in(?:[ _-]?seconds)?[\"']?\s*[:=]?|retry-?(?:after|delay)[\"']?\s*[:=]?)"
    r"\s*[\"']?((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])[,\s]*(?:and\s+)?)+"
    r"|\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)?(?![a-z])",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?(?:\s+(\d{4}))?"
    r"[,\s]*(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:resets?|again|lifted|until|available)\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?"
    r"(?:\s*\(([A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*)\)|\s+(UTC|GMT))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NOON = 12


def reset_time(text: str, now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """The latest time that the text names and that lies ahead, at most FURTHEST; None if it names none.

    A time of day without a zone is one of `zone`, or of UTC.
    """
    here = zone or UTC
    found = [*_instants(text, here), *_spans(text, now), *_days(text, now, here), *_clocks(text, now, here)]
    ahead = [at for at in found if now < at <= now + FURTHEST]
    return max(ahead, default=None)


def _instants(text: str, zone: tzinfo) -> list[datetime]:
    times = []
    for one in _ISO.findall(text):
        try:
            at = datetime.fromisoformat(one)
            times.append((at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC))
        except (ValueError, OverflowError):  # the year 1 or 9999, as programs write "never"
            continue
    return times + [datetime.fromtimestamp(int(one), UTC) for one in _EPOCH.findall(text)]


def _spans(text: str, now: datetime) -> list[datetime]:
    return [now + timedelta(seconds=seconds) for one in _SPAN.findall(text) if (seconds := _seconds(one)) > 0]


def _seconds(text: str) -> float:
    total = 0.0
    for count, unit in _PART.findall(text):
        name = unit.casefold()
        short = "ms" if name.startswith(("ms", "milli")) else name[:1] or "s"
        total += float(count) * _UNITS[short]
    return min(total, FURTHEST.total_seconds() * 2)


def _days(text: str, now: datetime, zone: tzinfo) -> list[datetime]:
    """Such as `Nov 18th, 2026 5:00 AM`; without a year, the next such day."""
    times = []
    for month, day, year, hour, minute, half in _DAY.findall(text):
        local = now.astimezone(zone)
        for which in (int(year),) if year else (local.year, local.year + 1):
            try:
                at = datetime(
                    which, _MONTHS.index(month.casefold()) + 1, int(day), _hour(hour, half), int(minute or 0),
                    tzinfo=zone,
                ).astimezone(UTC)  # fmt: skip
            except (ValueError, OverflowError):
                continue
            if at > now:
                times.append(at)
                break
    return times


def _clocks(text: str, now: datetime, zone: tzinfo) -> list[datetime]:
    """Such as `resets 3pm (Europe/Berlin)`: the next time that a clock there shows it."""
    times = []
    for hour, minute, half, named, utc in _CLOCK.findall(text):
        if not (minute or half):
            continue  # a bare number may be anything
        where = UTC if utc else _zone(named) or zone
        try:
            at = now.astimezone(where).replace(hour=_hour(hour, half), minute=int(minute or 0), second=0, microsecond=0)
        except ValueError:
            continue
        times.append((at if at > now else at + timedelta(days=1)).astimezone(UTC))
    return times


def _hour(text: str, half: str) -> int:
    hour = int(text)
    if not half:
        return hour
    return hour % _NOON + (_NOON if half.casefold() == "pm" else 0)


def _zone(name: str) -> ZoneInfo | None:
    try:
        return zone_named(name) if name else None
    except ValueError:
        return None
