"""Durations as people write them: `90s`, `1h30m`, `1.5h`, `7d`, `2w`."""

import re
from datetime import timedelta

_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d|w)")


def parse_duration(text: str) -> timedelta:
    """Raises ValueError with a sentence that names the text and shows a good one."""
    stripped = text.strip()
    if stripped == "0":
        return timedelta(0)
    position, seconds = 0, 0.0
    for part in _PART.finditer(stripped):
        if part.start() != position:
            break
        seconds += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if not stripped or position != len(stripped):
        raise ValueError(f"`{text}` is not a duration; write one such as `90s`, `1h30m` or `7d`")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"`{text}` is longer than any duration we can keep") from None


def format_duration(span: timedelta) -> str:
    """The shortest exact form in whole units, `1h30m`; below a second in milliseconds."""
    micros = span // timedelta(microseconds=1)
    if micros == 0:
        return "0s"
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros < 1_000_000:
        return f"{sign}{micros / 1000:g}ms"
    parts = []
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000)):
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count}{unit}")
    if micros:
        parts.append(f"{micros / 1_000_000:g}s")
    return sign + "".join(parts)
