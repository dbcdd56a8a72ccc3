"""Idleness and draining of living sessions: when one counts as idle, and what its drain marks say."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.model import Seen
from lamplighter.kit.clock import SET_BACK_TOLERANCE
from lamplighter.kit.records import record

STARTUP_GRACE = timedelta(seconds=60)


def activity_since(started_at: datetime, activity: datetime | None) -> datetime:
    """The last activity of a session that began at `started_at`; without any, its start.

    Times of files and terminals are coarser than that of the start, and may lie shortly before it. Activity long before
    the start is newer than the start: the clock was set back in between.
    """
    if activity is None:
        return started_at
    return activity if started_at - activity > SET_BACK_TOLERANCE else max(activity, started_at)


def idle_at(seen: Seen, timeout: timedelta | None, *, grace: timedelta = STARTUP_GRACE) -> datetime | None:
    """When the session counts as idle without new activity; None if no limit is set or its activity is unknown.

    Activity before the start belongs to an earlier start; a new session has the grace period on top of the limit.
    """
    if timeout is None or timeout <= timedelta(0) or seen.last_activity is None:
        return None
    floor = seen.started_at + grace if seen.started_at else seen.last_activity
    return max(seen.last_activity, floor) + timeout


class DrainReason(StrEnum):
    """Why a session was asked to finish; only a surplus drain is cleared because the session is wanted again."""

    SURPLUS = "surplus"
    DRIFT = "drift"
    PERSON = "person"


@record
class Draining:
    since: datetime | None
    reason: DrainReason
    acknowledged: bool


def draining(seen: Seen) -> Draining | None:
    """The drain marks of a session, or None. A mark without a readable time is never overdue; one without a known
    reason counts as a person's.
    """
    value = seen.meta.get(meta.DRAIN, "")
    acknowledged = bool(seen.meta.get(meta.DRAIN_ACK))
    if not value and not acknowledged:
        return None
    try:
        since: datetime | None = datetime.fromtimestamp(int(value), UTC)
    except (ValueError, OverflowError, OSError):
        since = None
    reason = seen.meta.get(meta.DRAIN_REASON, "")
    known = DrainReason(reason) if reason in {*DrainReason} else DrainReason.PERSON
    return Draining(since, known, acknowledged)


def overdue_at(marks: Draining, timeout: timedelta) -> datetime | None:
    """When the drain times out; None without a known start, and for a timeout of 0, which waits for ever."""
    return None if marks.since is None or timeout <= timedelta(0) else marks.since + timeout


def drain_overdue(marks: Draining, timeout: timedelta, now: datetime) -> bool:
    at = overdue_at(marks, timeout)
    return at is not None and now > at
