"""Masks what differs from one run of the tests to the next, and leaves names, types and everything else to be seen."""

import re
from collections.abc import Mapping
from typing import Any

ID = re.compile(
    r"\b(adt|ast|aut|blk|cty|dlv|inb|msg|nod|ntc|org|out|own|run|ses|tail|tev|tok)_[0-9a-z]{26}(?![0-9a-z])"
)
TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?(?: [A-Z]{3,4}\b)?")
PATTERNS = (
    (ID, r"<\1>"),
    (TIME, "<time>"),
    (re.compile(r"^\d{4}-\d\d-\d\d$"), "<day>"),
    (re.compile(r"\b[0-9a-f]{40,64}\b"), "<digest>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"(?<=/sign-in/)[\w-]{43}"), "<secret>"),
    (re.compile(r"(?i)(?<=\bprocess )\d+|(?<=\bpid )\d+"), "<pid>"),
    (re.compile(r"^([a-z_]+\.[a-z_.]+) \(\d+\)$"), r"\1 (<seq>)"),
    (re.compile(r"\b[\d.]+ [GM]iB(?= are free)"), "<size>"),
    (re.compile(r"\b\d+ of \d+(?= file descriptors are open)"), "<number> of <number>"),
    (re.compile(r"(?<=>, in )\d+ (?:s|min|h|d)\b(?: \d+ (?:s|min|h)\b)?|(?<=Berlin, in )[^.]+(?=\.)"), "<duration>"),
    (re.compile(r"(?<= in )(?:\d+[dhms])+\b"), "<duration>"),
    (re.compile(r"(?<=It was taken up )(?:at once|after [^.]+)(?=\.)"), "<when>"),
    (re.compile(r"(?<=\blamplighter-town-)[0-9a-z]{6}\b"), "<city>"),
    (re.compile(r"\b(?:to|we)-[0-9a-z]{3,8}\b"), "<bead>"),
)
ARTIFACT = "artifact_written"
NUMBERS = {
    "pid": "<pid>", "before": "<pid>", "duration_s": "<seconds>", "seq": "<seq>", "event_cursor": "<seq>",
    "size": "<bytes>", "payload_size": "<bytes>",
}  # fmt: skip
"""By key: whole numbers and fractions that are never the same twice."""


def masked(value: Any, texts: Mapping[str, str], key: str = "") -> Any:
    """`value` with ids, times, pids and the like masked; `texts` gives the masks of whole words of this machine.

    Null stays null and a number's mask says what kind of number it was, so that presence and type are seen.
    """
    if isinstance(value, dict) and key == "descriptors":
        return {name: f"<number> {type(entry).__name__}" for name, entry in value.items()}
    if isinstance(value, dict):
        return {_text(name, texts): masked(entry, texts, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [masked(entry, texts, key) for entry in _steady(value)]
    if isinstance(value, str):
        return _text(value, texts)
    if key in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{NUMBERS[key]} {type(value).__name__}"
    return value


def _text(text: str, texts: Mapping[str, str]) -> str:
    """Paths first, for parts of one may look like an id; names last, for an id may contain one."""
    longest_first = sorted(texts, key=len, reverse=True)
    for path in (one for one in longest_first if one.startswith("/")):
        text = _replaced(text, path, texts[path])
    for pattern, mask in PATTERNS:
        text = pattern.sub(mask, text)
    for name in (one for one in longest_first if not one.startswith("/")):
        text = _replaced(text, name, texts[name])
    return text


def _replaced(text: str, word: str, mask: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", mask, text)


def _steady(values: list[Any]) -> list[Any]:
    return in_order(values) if values and all(isinstance(one, dict) for one in values) else values


def in_order(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A run's events with its artifacts at the end: those are written aside, sooner or later than the run moves on."""
    moves = [event for event in events if _of_run(event).get("type") != ARTIFACT]
    artifacts = [event for event in events if _of_run(event).get("type") == ARTIFACT]
    return moves + sorted(artifacts, key=lambda event: str(_of_run(event).get("data")))


def _of_run(part: dict[str, Any]) -> dict[str, Any]:
    """The event itself, where it is shown as a part of a run that is followed."""
    event = part.get("event")
    return event if isinstance(event, dict) else part
