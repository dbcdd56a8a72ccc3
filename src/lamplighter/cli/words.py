"""Values in words for people: times, spans, counts, states, short ids. Programs get them unchanged by `--json`."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from lamplighter.kit.counting import counted as counted  # noqa: PLC0414  one word of many that are said here
from lamplighter.kit.durations import coming, spoken
from lamplighter.kit.short_ids import LONG_ID, SHORT
from lamplighter.kit.short_ids import shortened as shortened  # noqa: PLC0414  as above

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_IRREGULAR = {"needs_human": "needs you"}
_GOOD, _BUSY, _BAD, _ODD, _QUIET = "green", "cyan", "red", "yellow", "bright_black"
COLOURS: Mapping[str, str] = {
    "succeeded": _GOOD, "running": _GOOD, "on": _GOOD, "alive": _GOOD, "completed": _GOOD, "fired": _GOOD, "yes": _GOOD,
    "open": _GOOD, "done": _GOOD, "ready": _BUSY, "queued": _BUSY, "enriching": _BUSY, "starting": _BUSY,
    "in_progress": _BUSY, "waiting": _BUSY, "pending": _BUSY, "claimed": _BUSY, "draining": _ODD, "needs_human": _ODD,
    "snoozed": _QUIET, "failed": _BAD, "timed_out": _BAD, "crashed": _BAD, "quarantined": _BAD, "broken": _BAD,
    "dead": _BAD, "missing": _BAD, "lost": _BAD, "gave_up": _BAD, "canceled": _QUIET, "skipped": _QUIET,
    "suspended": _QUIET,
    "disabled": _QUIET, "stopped": _QUIET, "closed": _QUIET, "ended": _QUIET, "left": _QUIET, "no": _QUIET,
    "resolved": _QUIET, "dismissed": _QUIET, "answered": _QUIET,
}  # fmt: skip
"""The colour of each state, of whatever it is one."""


def plain(text: str) -> str:
    """`text` without terminal control characters: the writer of an event must not control the reader's terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def listed(names: Iterable[str], *, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, final = list(names) or [""]
    return f"{', '.join(first)} {last} {final}" if first else final


def state(value: Any) -> str:
    """The word for a state: `needs you` for needs_human, `timed out` for timed_out."""
    text = str(value.value if isinstance(value, Enum) else value)
    return _IRREGULAR.get(text, text.replace("_", " "))


def colour(value: Any) -> str | None:
    return COLOURS.get(str(value.value if isinstance(value, Enum) else value))


def reason(text: str | None, of: Any) -> str:
    """A reason beside the state `of`; empty where it would only say the state again."""
    said = (text or "").strip()
    if _bare(said) in {_bare(state(of)), _bare(str(of))}:
        return ""
    return said.replace("_", " ") if _is_code(said) else said


def _bare(text: str) -> str:
    return text.casefold().replace("_", " ").strip(" .")


def _is_code(text: str) -> bool:
    """Whether it is a word for programs, such as `deadline_exceeded`."""
    return re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", text) is not None


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────


span = spoken
"""How long something took."""


def ago(at: datetime, now: datetime) -> str:
    """How far a time lies from now: `3 min ago`, `in 2 h 5 min`; the date where it lies months away."""
    away = (at - now).total_seconds()
    seconds = abs(away)
    if seconds >= 60 * 86_400:
        return at.astimezone().strftime("%Y-%m-%d")
    if away >= 1:
        return coming(at - now)
    if seconds < 1:
        return "now"
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size or size == 1)
    return f"{int(seconds / size)} {unit} ago"


_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def exact(at: datetime | None) -> str:
    """A time in the local zone, with the zone's name; empty for None."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z").rstrip()


def clock(at: datetime) -> str:
    """The local time of day, for lines about what happens now."""
    return at.astimezone().strftime("%H:%M:%S")


def moment(value: Any) -> datetime | None:
    """The time that a value is, be it a datetime or a time as our JSON writes it."""
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value) if isinstance(value, str) and _RFC3339.fullmatch(value) else None


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """For each long id its last characters, as many as tell these ids apart; every command takes them back."""
    found = {one for one in ids if LONG_ID.fullmatch(one)}
    size = SHORT
    while len({one[-size:] for one in found}) < len({one.partition("_")[2] for one in found}):
        size += 1
    return {one: one[-size:] for one in found}


def short_id(one: str | None) -> str:
    """The short form of one id, for a sentence."""
    return "" if one is None else one[-SHORT:] if LONG_ID.fullmatch(one) else one


# ── any value ─────────────────────────────────────────────────────────────────────────────────────────────────────


def words(value: Any, now: datetime | None = None) -> str:  # noqa: PLR0911  a table of types
    """Any value as people read it; times relative to `now`, or exact where it is None."""
    at = moment(value)
    if at is not None:
        return exact(at) if now is None else ago(at, now)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={words(entry, now)}" for key, entry in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(words(entry, now) for entry in value)
    return plain(str(value))
