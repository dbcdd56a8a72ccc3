"""A clock that was set back: detected by recorded times in the future, corrected in one transaction, and reported."""

from dataclasses import replace
from datetime import datetime, timedelta

from lamplighter.domain.automations.state import clock_set_back
from lamplighter.domain.events import EventFilter
from lamplighter.kit.clock import SET_BACK_TOLERANCE
from lamplighter.kit.durations import format_duration
from lamplighter.kit.records import record
from lamplighter.services.automations import snapshots
from lamplighter.services.context import Context
from lamplighter.services.rules import Rules
from lamplighter.store import polls
from lamplighter.store.tx import Tx

EVENT = "controller.clock_set_back"
LOOKED_AT = 200
TOLD_FOR = timedelta(days=7)
_SECOND = timedelta(seconds=1)


@record
class SetBack:
    """`at` is when it was corrected; None while it has not been."""

    by: timedelta
    at: datetime | None = None


def ahead(tx: Tx, now: datetime) -> timedelta | None:
    """How far the newest recorded time is ahead of `now`; None within the tolerated difference between two machines."""
    found = tx.events.latest(EventFilter(type=EVENT), limit=1)
    after = found[-1].seq if found else 0
    times = [event.at for event in tx.events.latest(EventFilter(after=after), limit=LOOKED_AT)]
    fired = tx.clock_moves.latest_firing()
    newest = max([*times, *([] if fired is None else [fired])], default=now)
    return newest - now if newest - now > SET_BACK_TOLERANCE else None


def mend(tx: Tx, by: timedelta, *, rules: Rules, ctx: Context) -> None:
    """Correct recorded times by `by`: waits keep their remaining length, schedules wait for their next time from now.

    No slot is fired twice.
    """
    tx.clock_moves.move_back(by, ctx.now)
    tx.wake(polls.TOPIC)
    triggers = tx.triggers.all()
    rows = tx.automations.lock_some(one.automation for one in triggers) if triggers else {}
    for found in triggers:
        try:
            automation = snapshots.of_row(rows[found.automation])
        except ValueError:
            continue  # written by a newer version of the program, or unreadable: it does not fire here
        trigger = automation.trigger(found.id)
        if trigger is not None:
            timing = rules.timing(automation, found.id)
            tx.triggers.save_state(replace(found, state=clock_set_back(trigger.gate, found.state, by, ctx.now, timing)))
    message = f"the clock was set back by {spoken(by)}"
    tx.events.append(ctx.event(EVENT, message=message, payload={"by_seconds": round(by.total_seconds(), 3)}))


def told(tx: Tx, now: datetime) -> SetBack | None:
    """The set-back to report: one that is not corrected yet, or one that was corrected within the last week."""
    by = ahead(tx, now)
    if by is not None:
        return SetBack(by)
    for event in tx.events.latest(EventFilter(type=EVENT), limit=1):
        if now - event.at < TOLD_FOR:
            seconds = event.payload["by_seconds"] if isinstance(event.payload, dict) else 0
            return SetBack(timedelta(seconds=seconds), event.at)
    return None


def spoken(by: timedelta) -> str:
    return format_duration(max(by - by % _SECOND, _SECOND))
