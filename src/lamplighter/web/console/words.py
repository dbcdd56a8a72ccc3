"""How the console says states, times and amounts: every state is a word and a glyph, never a colour alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from lamplighter.domain.events import Event
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.durations import coming
from lamplighter.web.console import ansi

MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True)
class Mark:
    """`look` is the class of the style sheet, `glyph` the name of a drawing in the page's sprite."""

    word: str
    look: str
    glyph: str


_OF_RUNS = {
    "queued": Mark("queued", "waiting", "ring"),
    "enriching": Mark("preparing", "waiting", "ring-half"),
    "ready": Mark("ready", "waiting", "ring-half"),
    "running": Mark("running", "active", "play"),
    "succeeded": Mark("succeeded", "good", "check"),
    "failed": Mark("failed", "bad", "cross"),
    "needs_human": Mark("needs you", "asks", "hand"),
    "timed_out": Mark("timed out", "bad", "clock"),
    "canceled": Mark("canceled", "quiet", "slash"),
    "skipped": Mark("skipped", "quiet", "skip"),
    "answered": Mark("answered", "quiet", "check"),
}
_OF_AGENTS = {
    "running": Mark("running", "good", "play"),
    "starting": Mark("starting", "active", "ring-half"),
    "draining": Mark("draining", "active", "drain"),
    "crashed": Mark("crashed", "bad", "cross"),
    "needs_you": Mark("needs you", "asks", "hand"),
    "quarantined": Mark("quarantined", "asks", "slash"),
    "suspended": Mark("suspended", "quiet", "pause"),
    "stopped": Mark("stopped", "quiet", "ring"),
}
_OF_SLOTS = {
    "fired": Mark("fired", "active", "play"),
    "completed": Mark("done", "good", "check"),
    "succeeded": Mark("done", "good", "check"),
    "failed": Mark("failed", "bad", "cross"),
    "skipped": Mark("skipped", "quiet", "skip"),
    "missed": Mark("missed", "asks", "clock"),
}
_OF_BEADS = {
    "open": Mark("open", "waiting", "ring"),
    "in_progress": Mark("in progress", "active", "play"),
    "blocked": Mark("blocked", "asks", "hand"),
    "closed": Mark("closed", "quiet", "check"),
}
_OF_NODES = {
    "alive": Mark("alive", "good", "check"),
    "lost": Mark("lost", "bad", "cross"),
}
_OF_FINDINGS = {
    "ok": Mark("ok", "good", "check"),
    "note": Mark("note", "waiting", "ring-half"),
    "problem": Mark("problem", "bad", "cross"),
    "mended": Mark("mended", "active", "check"),
}
_OF_INBOX = {
    "needs_human": Mark("asks you", "asks", "hand"),
    "failed": Mark("failed", "bad", "cross"),
    "timed_out": Mark("timed out", "bad", "clock"),
    "skipped": Mark("could not run", "asks", "skip"),
    "quarantined": Mark("quarantined", "asks", "hand"),
    "waiting": Mark("waits for a permission", "asks", "hand"),
    "disabled": Mark("disabled", "asks", "slash"),
    "quiet": Mark("gone quiet", "asks", "ring"),
    "broken": Mark("broken", "bad", "cross"),
    "draft": Mark("proposed", "waiting", "ring-half"),
    "outbox": Mark("given up", "bad", "cross"),
    "config": Mark("configuration", "bad", "cross"),
    "destination": Mark("destination", "bad", "cross"),
}
_OF_DESTINATIONS = {
    "unused": Mark("not used yet", "waiting", "ring"),
    "good": Mark("takes notices", "good", "check"),
    "failing": Mark("failing", "bad", "cross"),
    "disabled": Mark("disabled", "bad", "cross"),
}
_OF_BULK = {
    "working": Mark("at work", "active", "play"),
    "done": Mark("done", "good", "check"),
    "aborted": Mark("aborted", "quiet", "slash"),
    "waiting": Mark("waiting", "waiting", "ring"),
    "refused": Mark("refused", "bad", "cross"),
}
_OF_TRIES = {
    "fired": Mark("would fire", "good", "play"),
    "filtered": Mark("would not", "quiet", "skip"),
}
_OF_VERDICTS = {
    "fired": Mark("fired", "good", "play"),
    "filtered": Mark("filtered", "quiet", "skip"),
    "duplicate": Mark("duplicate", "quiet", "slash"),
    "skipped": Mark("skipped", "asks", "skip"),
    "held": Mark("held", "waiting", "pause"),
    "gathered": Mark("gathered", "waiting", "ring-half"),
    "loop": Mark("loop", "asks", "slash"),
    "waiting": Mark("waiting", "waiting", "ring"),
    "verified": Mark("verified", "quiet", "check"),
    "unverified": Mark("not verified", "bad", "cross"),
}
_OF_SLACK = {
    "True": Mark("connected", "good", "check"),
    "False": Mark("not connected", "bad", "cross"),
    "None": Mark("sends only", "quiet", "ring"),
}
MARKS: Mapping[str, Mapping[str, Mark]] = {
    "slack": _OF_SLACK,
    "bulk": _OF_BULK,
    "run": _OF_RUNS,
    "agent": _OF_AGENTS,
    "inbox": _OF_INBOX,
    "slot": _OF_SLOTS,
    "bead": _OF_BEADS,
    "node": _OF_NODES,
    "finding": _OF_FINDINGS,
    "destination": _OF_DESTINATIONS,
    "verdict": _OF_VERDICTS,
    "tried": _OF_TRIES,
}


def mark(state: Any, of: str = "run") -> Mark:
    """A state that is not known here is shown by its own name: one of a newer version must not look like nothing."""
    word = str(getattr(state, "value", state))
    return MARKS[of].get(word, Mark(word.replace("_", " "), "quiet", "ring"))


def iso(at: datetime) -> str:
    return rfc3339(at)


def exact(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S")


def hm(at: datetime) -> str:
    return at.strftime("%H:%M")


def day(at: datetime) -> str:
    """`Wednesday, 18 November`."""
    return f"{at.astimezone(UTC):%A}, {at.day} {at:%B}"


def ago(at: datetime, now: datetime) -> str:
    """`3 min ago`, `in 2 h 5 min`; the exact time is in the title of what shows it."""
    seconds = (now - at).total_seconds()
    if abs(seconds) < 2:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else coming(at - now)


def span(seconds: float) -> str:
    """In the largest unit that fits, as the script of the page says it too."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def duration(value: timedelta | float | None) -> str:
    """`1.4 s`, `3 min 12 s`, `2 h 5 min`; never below nothing, even if clocks disagree."""
    if value is None:
        return ""
    seconds = max(0.0, value.total_seconds() if isinstance(value, timedelta) else float(value))
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two(whole // MINUTE, "min", whole % MINUTE, "s")
    if whole < DAY:
        return _two(whole // HOUR, "h", whole % HOUR // MINUTE, "min")
    return _two(whole // DAY, "d", whole % DAY // HOUR, "h")


def _two(many: int, unit: str, rest: int, smaller: str) -> str:
    return f"{many} {unit} {rest} {smaller}" if rest else f"{many} {unit}"


_PLACES = {"automation": "/automations/", "agent": "/agents/", "bead": "/beads/", "bulk": "/bulk/"}


def leads_to(event: Event) -> str:
    """The address of what an event is about; empty where there is no page of it, or no more."""
    family, _, what = event.type.partition(".")
    if not event.subject or family not in _PLACES or what == "removed":
        return ""
    return _PLACES[family] + quote(event.subject, safe="/:")


def money(value: float | None) -> str:
    return "" if value is None else f"${value:,.4f}" if abs(value) < 0.01 else f"${value:,.2f}"


def number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def size(value: int) -> str:
    amount = float(value)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def last_line(output: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(ansi.plain(output).splitlines()) if line.strip()), "")


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def unmarked(text: str) -> str:
    """A text with the marks of Markdown for strong words taken off, where it is shown as it is."""
    return re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)


@dataclass(frozen=True)
class Piece:
    """A part of a sentence: `text`, `code` that stood between backticks, the id of a `run`, or a `time`."""

    kind: str
    text: str
    at: datetime | None = None


_PIECES = re.compile(
    r"`(?P<code>[^`\n]{1,300})`"
    r"|\b(?P<run>run_[0-9a-hjkmnp-tv-z]{26})\b"
    r"|\b(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?: UTC|Z))"
)


def pieces(text: str) -> list[Piece]:
    """A sentence in parts, so that a page can lead to the runs it names and say its times in the viewer's zone."""
    found, end = [], 0
    for one in _PIECES.finditer(text):
        kind = str(one.lastgroup)
        at = _moment(one[kind]) if kind == "time" else None
        if kind == "time" and at is None:
            continue
        if one.start() > end:
            found.append(Piece("text", text[end : one.start()]))
        found.append(Piece(kind, one[kind], at))
        end = one.end()
    return found + ([Piece("text", text[end:])] if end < len(text) else [])


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.removesuffix(" UTC").removesuffix("Z")).replace(tzinfo=UTC)
    except ValueError:
        return None


def short(run: str) -> str:
    """The end of an id, which differs where the beginnings, which are times, do not."""
    return run if len(run) <= 12 else f"…{run[-6:]}"
