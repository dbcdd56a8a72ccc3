"""A cursor: up to where the runs of an automation have seen what they look at, as a text, a whole number or a time."""

from datetime import datetime
from enum import StrEnum

from lamplighter.kit.clock import rfc3339

LONGEST = 1000


class CursorKind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    TIME = "time"


def written(value: str, kind: CursorKind) -> str:
    """The value as it is kept, in one spelling for each number and time. Raises ValueError with what is wrong."""
    said = value.strip()
    if not said:
        raise ValueError("is empty")
    if len(said) > LONGEST:
        raise ValueError(f"has {len(said)} characters; at most {LONGEST} are kept")
    if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in said):
        raise ValueError("holds signs that cannot be kept as text")
    match kind:
        case CursorKind.TEXT:
            return said
        case CursorKind.INTEGER:
            return _integer(said)
        case CursorKind.TIME:
            return _time(said)


def same(expected: str, present: str, kind: CursorKind) -> bool:
    """Whether somebody who expects this means what is there."""
    try:
        return written(expected, kind) == present
    except ValueError:
        return False


def _integer(said: str) -> str:
    digits = said.lstrip("+-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"`{said[:40]}` is not a whole number")
    return str(int(said))


def _time(said: str) -> str:
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"`{said[:40]}` is not a time with its zone, such as 2026-03-01T09:00:00Z")
    return rfc3339(at)
