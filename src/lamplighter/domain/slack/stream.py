"""A turn as a stream of Slack: its text as it comes, and the kinds of what is done as the entries of a plan."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any

from lamplighter.domain.slack.doing import THINKS, kind_of
from lamplighter.kit.clock import from_rfc3339, rfc3339
from lamplighter.kit.records import record

LASTS = timedelta(minutes=4)
"""Slack ends a stream after five minutes, whatever is added to it; it is ended before, and edited from then on."""
LONGEST = 11_000
"""What one stream may hold; Slack takes 12,000 characters at a time."""
MOST_ENTRIES, MOST_GOING = 40, 50
"""Slack shows 50 entries of a plan."""
AT_WORK, GOES_ON = "At work", "Goes on below"
MODE = "plan"


class Mode(StrEnum):
    """Where the message of a turn stands. What an UNSURE one shows is not known: a call may have been carried out."""

    NONE = "none"
    OPEN = "open"
    UNSURE = "unsure"
    CLOSED = "closed"
    EDITED = "edited"


class Status(StrEnum):
    GOING = "in_progress"
    COMPLETE = "complete"
    ERROR = "error"


@record
class Entry:
    """What was done of one kind, so many times. `going` are those that have not ended, `ok` how the last one did."""

    kind: str
    calls: int = 1
    going: tuple[str, ...] = ()
    ok: bool = True

    @property
    def title(self) -> str:
        return self.kind.capitalize() + (f" ({self.calls})" if self.calls > 1 else "")

    @property
    def status(self) -> Status:
        if self.going:
            return Status.GOING
        return Status.COMPLETE if self.ok else Status.ERROR


@record
class Stream:
    """`mark` is the id of its first entry, by which it is found again; `begun` is when it was opened."""

    mode: Mode = Mode.NONE
    mark: str = ""
    begun: datetime | None = None
    entries: tuple[Entry, ...] = ()

    def is_old(self, now: datetime) -> bool:
        return self.begun is not None and now - self.begun > LASTS


# ── as it is kept ─────────────────────────────────────────────────────────────────────────────────────────────────


def read(text: str) -> Stream:
    if not text:
        return Stream()
    found = json.loads(text)
    entries = [Entry(kind, calls, tuple(going), ok) for kind, calls, going, ok in found["entries"]]
    begun = found["begun"]
    return Stream(Mode(found["mode"]), found["mark"], from_rfc3339(begun) if begun else None, tuple(entries))


def written(stream: Stream) -> str:
    if stream == Stream():
        return ""
    entries = [[one.kind, one.calls, list(one.going), one.ok] for one in stream.entries]
    begun = "" if stream.begun is None else rfc3339(stream.begun)
    return json.dumps({"mode": stream.mode, "mark": stream.mark, "begun": begun, "entries": entries})


CLOSED, EDITED = written(Stream(Mode.CLOSED)), written(Stream(Mode.EDITED))


def mark_of(effect: str) -> str:
    return f"lamp-{sha256(effect.encode()).hexdigest()[:20]}"


# ── what is done ──────────────────────────────────────────────────────────────────────────────────────────────────


def begun(entries: Sequence[Entry], tool: str, name: str) -> tuple[Entry, ...]:
    """The entries once a tool of that name was begun. One that is not worth telling, such as reading, has none."""
    kind, found = kind_of(name), list(entries)
    if not kind:
        return tuple(found)
    at = next((number for number in reversed(range(len(found))) if found[number].kind == kind), None)
    if at is None or (at != len(found) - 1 and len(found) < MOST_ENTRIES):
        if len(found) < MOST_ENTRIES:
            found.append(Entry(kind, going=(tool,)))
        return tuple(found)
    one = found[at]
    found[at] = replace(one, calls=one.calls + 1, going=(*one.going, tool)[-MOST_GOING:])
    return tuple(found)


def ended(entries: Sequence[Entry], tool: str, *, ok: bool) -> tuple[Entry, ...]:
    found = list(entries)
    for number in reversed(range(len(found))):
        if tool in found[number].going:
            left = tuple(one for one in found[number].going if one != tool)
            found[number] = replace(found[number], going=left, ok=ok)
            break
    return tuple(found)


# ── as Slack takes it ─────────────────────────────────────────────────────────────────────────────────────────────


def opening(mark: str) -> list[dict[str, Any]]:
    """What a stream begins with: nothing that is said, so that one that is begun twice says nothing twice."""
    return [_plan(AT_WORK), _task(mark, THINKS.capitalize(), Status.GOING)]


def added(stream: Stream, after: Sequence[Entry], text: str) -> list[dict[str, Any]]:
    """What has come: entries that are new or have changed, and text in Markdown."""
    return [*_changed(stream.mark, stream.entries, after), *([_text(text)] if text else [])]


def closing(stream: Stream, title: str, *, ok: bool) -> list[dict[str, Any]]:
    """The end of a stream: all its entries are over, and its first says how it ended."""
    over = [replace(one, going=(), ok=ok) if one.going else one for one in stream.entries]
    first = _task(stream.mark, THINKS.capitalize(), Status.COMPLETE if ok else Status.ERROR)
    return [_plan(title), *_changed(stream.mark, stream.entries, over), first]


def _changed(mark: str, before: Sequence[Entry], after: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        _task(f"{mark}-{number}", one.title, one.status)
        for number, one in enumerate(after)
        if number >= len(before) or (one.title, one.status) != (before[number].title, before[number].status)
    ]


def _plan(title: str) -> dict[str, Any]:
    return {"type": "plan_update", "title": title}


def _task(mark: str, title: str, status: Status) -> dict[str, Any]:
    return {"type": "task_update", "id": mark, "title": title, "status": status.value}


def _text(text: str) -> dict[str, Any]:
    return {"type": "markdown_text", "text": text}


def holds(message: Mapping[str, Any], mark: str) -> bool:
    """Whether that message is the stream with the mark."""
    return mark in _marks(message.get("blocks") or ())


def _marks(blocks: Iterable[Any]) -> set[str]:
    found: set[str] = set()
    for one in blocks:
        if isinstance(one, Mapping):
            found |= {str(one.get("task_id", ""))} | _marks(one.get("tasks") or ())
    return found
