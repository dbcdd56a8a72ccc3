"""Parses JSON from outside strictly and to a bounded depth, and caches objects that many rows share."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


class TooDeep(ValueError):
    def __init__(self) -> None:
        super().__init__(f"it has more than {DEEPEST} arrays and objects within each other")


_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
DEEPEST = 100
"""The most nested levels of arrays and objects, so that a parsed value can be checked, compared and written again."""


def parse(text: str | bytes) -> Any:
    """Any JSON value. Raises ValueError, also for NaN and infinities and for a value that is nested too deeply."""
    try:
        value = _STRICT.decode(text if isinstance(text, str) else text.decode(json.detect_encoding(text)))
    except RecursionError:
        raise TooDeep from None
    if _openings(text) > DEEPEST and is_too_deep(value):
        raise TooDeep
    return value


def parse_with_comments(text: str) -> Any:
    """As `parse`, for files of programs that allow `//` and `/* */` comments. Raises ValueError."""
    return parse(_STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text))


def is_too_deep(value: object) -> bool:
    """Whether it is nested deeper than DEEPEST; goes level by level without recursion, so any depth can be measured."""
    level = [value]
    for _ in range(DEEPEST):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    """The children that can have children themselves."""
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in found if isinstance(child, dict | list)]


def _openings(text: str | bytes) -> int:
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no value in JSON")


_STRICT = json.JSONDecoder(parse_constant=_no_constant)  # made once: json.loads would make a decoder at each call


class Written(dict[str, Any]):
    """An object together with the text it was read from; cached and shared, so callers must not change it."""

    __slots__ = ("text",)

    text: str


@lru_cache(maxsize=4096)
def read(text: str) -> Written:
    found = Written(json.loads(text))
    found.text = text
    return found


def text_of(body: Mapping[str, Any]) -> str:
    return body.text if isinstance(body, Written) else json.dumps(body, sort_keys=True)
