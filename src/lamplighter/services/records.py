"""What the store knows for a status, from a few cheap queries; their cost does not grow with the history."""

from datetime import datetime, timedelta
from typing import Any

from lamplighter.kit.clock import rfc3339
from lamplighter.kit.ids import oldest_id
from lamplighter.store.summary import RunRow, Summary

LOOKED_AT = timedelta(days=7)
SHOWN = 5
FAILURES = 3
ACTIVE = ("queued", "enriching", "ready", "running")
FAILED = ("failed", "timed_out")


def work(known: Summary, now: datetime, most: int | None = None) -> dict[str, Any]:
    """What runs, what needs a person, what comes next.

    Counted are active runs and those made in the last week, without questions that were answered, and the items of the
    inbox that are open. Of the runs in each state at most `most` are counted.
    """
    row = known.city()
    counts = known.runs(since=oldest_id("run", now - LOOKED_AT), most=most)
    return {
        "paused": row is not None and row[1],
        "runs": counts,
        "attention": known.attention(now),
        "next": [
            {"scoped_name": name, "trigger": trigger, "at": rfc3339(at)}
            for name, trigger, at in known.upcoming(limit=SHOWN)
        ],
    }


def _told(runs: list[RunRow]) -> list[dict[str, Any]]:
    return [
        {"id": one.id, "automation": one.automation, "state": one.state, "reason": one.reason or None,
         "at": rfc3339(one.at), "waits_for": _waits_for(one)}
        for one in runs
    ]  # fmt: skip


def _waits_for(one: RunRow) -> str | None:
    return (one.error or one.reason) if one.state == "ready" and one.reason else None


def recorded(known: Summary, name: str, now: datetime, most: int | None = None) -> dict[str, Any]:
    """The part of a status that the store knows; a city that was never started is called `name`."""
    row, last = known.city(), known.last_event()
    return {
        "city": name if row is None else row[0],
        **work(known, now, most),
        "under_way": _told(known.latest_runs(ACTIVE, since="", limit=SHOWN)),
        "failures": _told(known.latest_runs(FAILED, since=oldest_id("run", now - LOOKED_AT), limit=FAILURES)),
        "beads": known.beads(),
        "last_event": f"{last[0]} ({last[1]})" if last is not None else None,
        "logins": known.logins(),
    }
