"""Durations as people write them: `90s`, `1h30m`, `1.5h`, `7d`, `2w`."""

import re
from datetime import timedelta

_NANOS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
    "d": 86_400 * 10**9, "w": 604_800 * 10**9,
}  # fmt: skip
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ns|us|µs|ms|s|m|h|d|w)")
_LONGEST_TEXT = 60
_SCALE = 10**_LONGEST_TEXT
_MICRO = timedelta(microseconds=1)
_MINUTES_ALONE = 600
"""From so many seconds on, seconds are left out of a time to come."""
LONGEST = timedelta(days=365_000)
"""A thousand years: several of them can be added to a time, or taken from it, and the result is still a date."""


def parse_duration(text: str) -> timedelta:
    """Raises ValueError with a sentence that names the text and shows a good one."""
    stripped = text.strip()
    if stripped == "0":
        return timedelta(0)
    position, scaled = 0, 0
    for part in _PART.finditer(stripped[:_LONGEST_TEXT]):
        if part.start() != position:
            break
        scaled += _scaled(part[1], part[2] or "") * _NANOS[part[3]]
        position = part.end()
    if not stripped or position != len(stripped):
        raise ValueError(f"`{text[:_LONGEST_TEXT]}` is not a duration; write one such as `90s`, `1h30m` or `7d`")
    micros = (scaled + 500 * _SCALE) // (1000 * _SCALE)
    if micros > LONGEST // _MICRO:
        raise ValueError(f"`{text}` is longer than any duration we can keep, which is {LONGEST.days:,} days")
    return timedelta(microseconds=micros)


def _scaled(whole: str, fraction: str) -> int:
    """The decimal number times `_SCALE`, as an integer: exact, unlike a float."""
    shift: int = 10 ** (_LONGEST_TEXT - len(fraction))
    return int(whole + fraction) * shift


def format_duration(span: timedelta) -> str:
    """The exact duration in days, hours, minutes and seconds without zero parts, `1h30m`; below a second in ms.

    Seconds and milliseconds may have decimals.
    """
    micros = span // timedelta(microseconds=1)
    if micros == 0:
        return "0s"
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 3)}ms"
    parts = []
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000)):
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count}{unit}")
    if micros:
        parts.append(f"{_decimal(micros, 6)}s")
    return sign + "".join(parts)


def _decimal(number: int, places: int) -> str:
    """`number` shifted right by `places` digits, exactly, without trailing zeros."""
    whole, rest = divmod(number, 10**places)
    return f"{whole}.{rest:0{places}}".rstrip("0").rstrip(".")


def coming(until: timedelta) -> str:
    """How far a time to come is, the same everywhere: `now`, `in 37 s`, `in 4 min 16 s`, `in 47 min`, `in 3 d 4 h`.

    A second that has begun counts: what is said to come in 1 s has not come yet.
    """
    seconds = -(-until // timedelta(seconds=1))
    if seconds >= _MINUTES_ALONE:
        seconds -= seconds % 60
    return f"in {spoken(timedelta(seconds=seconds))}" if seconds > 0 else "now"


def spoken(length: timedelta) -> str:
    """For people, in at most two units: `40 ms`, `1.4 s`, `12 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for size, unit, below, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"
