"""Reads the lines of JSON that programs print, ignoring everything else they print."""

import json
import re
from typing import Any

from lamplighter.domain.sessions.transcript import Failed, Parsed, SessionEvent, Text, Usage
from lamplighter.kit import json_text

DETAIL = 500
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_]|[ -/]+[0-~])")
Json = dict[str, Any]


def json_line(line: str) -> Json | None:
    """The JSON object on a line; None for anything else, including garbage and incomplete lines."""
    text = line.strip()
    if not text.startswith("{"):
        return None
    try:
        found = json_text.parse(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def plain(line: str) -> Parsed:
    """The parser for programs that print only text: every line that is not blank is a Text event."""
    text = without_escapes(line).rstrip("\r\n")
    return Parsed((Text(text),) if text.strip() else ())


def without_escapes(text: str) -> str:
    """`text` without the codes that colour it, move the cursor or set a title."""
    return _ESCAPE.sub("", text)


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def table(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else 0


def money(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def detail(value: object) -> str:
    """A short description of a tool's input or result."""
    if isinstance(value, str):
        return value[:DETAIL]
    if isinstance(value, list):
        said = " ".join(text(table(item).get("text")) for item in value).strip()
        if said:
            return said[:DETAIL]
    if isinstance(value, dict) and text(value.get("command")):
        return text(value["command"])[:DETAIL]
    return "" if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)[:DETAIL]


def usage(found: Json, *, read: str, written: str, cached: str = "", cost: object = None) -> tuple[SessionEvent, ...]:
    """The Usage event of a table whose keys have these names; empty if all counts are zero."""
    counted = Usage(number(found.get(read)), number(found.get(written)), number(found.get(cached)), money(cost))
    return () if counted in (Usage(), Usage(cost_usd=0.0)) else (counted,)


def failure(value: object) -> tuple[SessionEvent, ...]:
    said = text(value) or text(table(value).get("message")) or detail(value)
    return (Failed(said),) if said else ()
