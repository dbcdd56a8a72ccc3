"""Who is told of an inbox item, and when: the rules of notices, as pure functions."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from lamplighter.domain.inbox.items import BY_ITSELF, OF_FAILURES, OF_RUNS, URGENT, InboxItem, Kind
from lamplighter.kit.records import record

NOBODY = frozenset({"inbox", "none"})
"""Destinations that every city has: what is sent there is in the inbox anyway, or wanted by nobody."""


class What(StrEnum):
    """The occasion of a notice."""

    OPENED = "opened"
    RECOVERED = "recovered"
    SUCCEEDED = "succeeded"
    SESSION = "session"
    DIGEST = "digest"
    TEST = "test"


class NoticeState(StrEnum):
    PENDING = "pending"
    HELD = "held"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"


@record
class Notice:
    """One message to one destination. `about` is the id of an inbox item or a run; `body` is what is told of it."""

    id: str
    destination: str
    about: str
    what: What
    body: Mapping[str, Any]
    created_at: datetime
    state: NoticeState = NoticeState.PENDING
    attempts: int = 0
    last_error: str = ""
    sent_at: datetime | None = None
    doubts: int = 0
    """Tries whose answer was lost: it may have arrived that often beside the one that is known."""
    answer: str = ""


@record
class Rule:
    """What one destination is told: which ends of runs, and from how many failures on."""

    destination: str
    on: frozenset[str]
    after: int = 1


@record
class QuietHours:
    """From `start` until `end`, which may be on the next day."""

    start: time
    end: time

    def hold(self, local: datetime) -> bool:
        at = local.time().replace(tzinfo=None)
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end


def link_of(public_url: str, body: Mapping[str, Any]) -> str:
    """The page of what a notice is about: its item, its run, its session, else the inbox; empty without an address."""
    if not public_url:
        return ""
    for key, page in (("item", "inbox"), ("run", "runs"), ("agent", "agents")):
        if body.get(key):
            return f"{public_url.rstrip('/')}/{page}/{quote(str(body[key]))}"
    return f"{public_url.rstrip('/')}/inbox"


def quiet_hours(text: str) -> QuietHours | None:
    """From a text such as `22:00-07:00`; None for an empty one. Raises ValueError."""
    if not text:
        return None
    start, _, end = text.partition("-")
    return QuietHours(time.fromisoformat(start), time.fromisoformat(end))


def told_of(item: InboxItem, rules: Sequence[Rule]) -> list[str]:
    """The destinations that are to know of an open item, as it is now.

    A notice about a destination never goes to that destination.
    """
    return [rule.destination for rule in rules if rule.destination not in NOBODY and _wants(rule, item)]


def is_counted(item: InboxItem, rules: Sequence[Rule]) -> bool:
    """Whether a destination is to know of it only once it has happened more often than until now."""
    waiting = (rule for rule in rules if rule.destination not in NOBODY and not _often_enough(rule, item))
    return any(_is_about(rule, item) for rule in waiting)


def _wants(rule: Rule, item: InboxItem) -> bool:
    return _is_about(rule, item) and _often_enough(rule, item)


def _is_about(rule: Rule, item: InboxItem) -> bool:
    if item.kind is Kind.DESTINATION and item.subject == rule.destination:
        return False
    return item.kind not in OF_RUNS or _end(item) in rule.on


def _often_enough(rule: Rule, item: InboxItem) -> bool:
    return item.kind not in OF_FAILURES or item.count >= rule.after


def _end(item: InboxItem) -> str:
    return Kind.FAILED.value if item.kind is Kind.SKIPPED else item.kind.value


def told_of_recovery(item: InboxItem, earlier: Sequence[Notice]) -> list[str]:
    """The destinations that were told of an item which is over by itself, and are to know that too."""
    if item.settled_how not in BY_ITSELF:
        return []
    reached = {NoticeState.PENDING, NoticeState.SENT}
    return [one.destination for one in earlier if one.what is What.OPENED and one.state in reached]


def is_held(item: InboxItem, hours: QuietHours | None, local: datetime) -> bool:
    """Whether a notice of it waits for the end of the quiet hours: all do but questions and quarantines."""
    return hours is not None and item.kind not in URGENT and hours.hold(local)
