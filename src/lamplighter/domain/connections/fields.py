"""The values of a delivery by which its runs can be found later."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

MOST_FIELDS = 8
MOST_VALUES = 20
LONGEST_VALUE = 200
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*){0,9}")


def is_path(text: str) -> bool:
    return len(text) <= LONGEST_VALUE and _PATH.fullmatch(text) is not None


def values(paths: Iterable[str], fields: Mapping[str, Any], payload: Any) -> list[tuple[str, str]]:
    """Each declared path with the values it has: a field of the provider, or else what the payload holds there."""
    found: list[tuple[str, str]] = []
    for path in list(paths)[:MOST_FIELDS]:
        value = fields[path] if path in fields else _at(payload, path.split("."))
        for one in (value if isinstance(value, list) else [value])[:MOST_VALUES]:
            text = _text(one)
            if text and (path, text) not in found:
                found.append((path, text))
    return found


def _at(value: Any, steps: Iterable[str]) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)[:LONGEST_VALUE] if isinstance(value, str | int | float) else ""
