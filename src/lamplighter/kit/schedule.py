"""When a timed trigger fires next: pure arithmetic over time zones, with one rule for days on which clocks change.

Wall times are enumerated, then converted: a wall time that does not exist moves forward by the gap, a repeated one
counts the first time. A schedule that names no hour (hourly, `*/15 * * * *`) follows real hours instead: missing wall
times are left out, repeated ones count twice.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from lamplighter.kit.clock import rfc3339
from lamplighter.kit.cron import CronExpression, parse_cron
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)
# No zone has moved its clock by more than a day, so a change further away than this cannot affect the next time.
_NEAR = timedelta(hours=26)


@record
class Hourly:
    minute: int = 0


@record
class Daily:
    hour: int = 0
    minute: int = 0


@record
class Weekly:
    """`weekday` counts from Sunday, 0, to Saturday, 6."""

    weekday: int = 0
    hour: int = 0
    minute: int = 0


@record
class Once:
    at: datetime


When = CronExpression | Hourly | Daily | Weekly | Once


def next_run(after: datetime, when: When, zone: ZoneInfo) -> datetime | None:
    """The first time strictly after `after`, in UTC; None if there is no further one."""
    if isinstance(when, Once):
        at = when.at.astimezone(UTC)
        return at if at > after else None
    try:
        return _next(after.astimezone(UTC), expression_of(when), zone)
    except OverflowError:
        return None  # the calendar ends with the year 9999


def next_runs(after: datetime, when: When, zone: ZoneInfo, until: datetime) -> Iterator[datetime]:
    """Every time in (after, until], in order."""
    at = next_run(after, when, zone)
    while at is not None and at <= until:
        yield at
        at = next_run(at, when, zone)


def last_run(upto: datetime, when: When, zone: ZoneInfo, *, since: datetime) -> datetime | None:
    """The latest time in [since, upto]; a binary search, so that a dense schedule costs no more than a sparse one."""
    found = next_run(since - _INSTANT, when, zone)
    if found is None or found > upto:
        return None
    none_after = upto
    while none_after - found > _SECOND:
        middle = found + (none_after - found) / 2
        later = next_run(middle, when, zone)
        if later is not None and later <= none_after:
            found = later
        else:
            none_after = middle
    return found


def count_runs(after: datetime, when: When, zone: ZoneInfo, until: datetime) -> int:
    """How many times lie in (after, until]; the times of an ordinary day are counted without enumerating them."""
    if isinstance(when, Once):
        return sum(1 for _ in next_runs(after, when, zone, until))
    expression, total = expression_of(when), 0
    while after < until:
        start = after + _INSTANT
        end = _next_midnight(start, zone) - _INSTANT
        if end <= until and _is_plain_day(start, zone):
            total += expression.count_in_day(start.astimezone(zone).date())
        else:
            total += sum(1 for _ in next_runs(after, when, zone, min(end, until)))
        after = end
    return total


def slot_key(at: datetime, when: When, zone: ZoneInfo) -> str:
    """A permanent name for one time of a schedule: the wall minute and zone, or the UTC minute if it names no hours."""
    if isinstance(when, Once):
        return rfc3339(at)
    if expression_of(when).every_hour:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
    return f"{at.astimezone(zone):%Y-%m-%dT%H:%M}[{zone.key}]"


def human_schedule(when: When, zone: ZoneInfo | None = None) -> str:
    match when:
        case Hourly(minute):
            return f"Hourly at :{minute:02}"
        case Daily(hour, minute):
            return f"Daily at {hour:02}:{minute:02}"
        case Weekly(weekday, hour, minute):
            return f"Weekly on {WEEKDAYS[weekday]} at {hour:02}:{minute:02}"
        case Once(at):
            local = at.astimezone(zone or at.tzinfo or UTC)
            return f"Once at {local:%Y-%m-%d %H:%M} {local.tzname()}"
        case CronExpression():
            return when.in_words()


def badge(when: When) -> str:
    return "Cron" if isinstance(when, CronExpression) else type(when).__name__


def zone_name(zone: ZoneInfo) -> str:
    """The zone's name as people say it."""
    return "UTC" if zone.key in {"Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"} else zone.key


def zone_named(name: str) -> ZoneInfo:
    """Raises ValueError, with the nearest known name, for a name that is not an IANA time zone."""
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        hint = did_you_mean(name, available_timezones()) or "; write one such as `Europe/Berlin` or `UTC`"
        raise ValueError(f"`{name}` is not a time zone{hint}") from None


@lru_cache(maxsize=4096)
def expression_of(when: CronExpression | Hourly | Daily | Weekly) -> CronExpression:
    """Every repeating schedule as a cron expression, so that one algorithm serves all four kinds."""
    match when:
        case CronExpression():
            return when
        case Hourly(minute):
            return parse_cron(f"{minute} * * * *")
        case Daily(hour, minute):
            return parse_cron(f"{minute} {hour} * * *")
        case Weekly(weekday, hour, minute):
            return parse_cron(f"{minute} {hour} * * {weekday}")


def _next(after: datetime, expression: CronExpression, zone: ZoneInfo) -> datetime | None:
    real = expression.every_hour
    best: datetime | None = None
    horizon: datetime | None = None
    for wall in expression.walls(_start_wall(after, zone, real=real)):
        if horizon is not None and wall >= horizon:
            break
        later = [at for at in _instants(wall, zone, real=real) if at > after]
        if not later:
            continue
        best = min(later) if best is None else min(best, *later)
        # Near a clock change wall times and instants are ordered differently: look as far as the change reaches.
        horizon = horizon or wall + _bend(wall, zone)
        if wall >= horizon:
            break
    return best


def _start_wall(after: datetime, zone: ZoneInfo, *, real: bool) -> datetime:
    """The wall time to start from: earlier than that of `after` if a clock change lets an earlier one still come."""
    here = after.astimezone(zone)
    # With real hours, a fold ahead makes wall times come again; else, a gap behind has moved its wall times forward.
    other = after + _NEAR if real else after - _NEAR
    back = _offset(here) - _offset(other.astimezone(zone))
    wall = here.replace(tzinfo=None)
    return wall - back - _MINUTE if back > timedelta(0) else wall


def _instants(wall: datetime, zone: ZoneInfo, *, real: bool) -> tuple[datetime, ...]:
    first = wall.replace(tzinfo=zone).astimezone(UTC)
    if not real:
        return (first,)
    if first.astimezone(zone).replace(tzinfo=None) != wall:
        return ()
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return (first,) if first == second else (first, second)


def _bend(wall: datetime, zone: ZoneInfo) -> timedelta:
    """By how much the clock changes around this wall time; zero at an ordinary one."""
    return abs(_offset(wall.replace(tzinfo=zone)) - _offset(wall.replace(tzinfo=zone, fold=1)))


def _offset(at: datetime) -> timedelta:
    return at.utcoffset() or timedelta(0)


def _next_midnight(at: datetime, zone: ZoneInfo) -> datetime:
    """The next local midnight, or the time it moves to if the clock skips it; always after `at`."""
    today = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    return max((today + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC), at + _MINUTE)


def _is_plain_day(start: datetime, zone: ZoneInfo) -> bool:
    """Whether `start` is a local midnight with no clock change on the day that follows or the days beside it."""
    if start.astimezone(zone).time() != time.min:
        return False
    near = (start - _NEAR, start, start + 2 * _NEAR)
    return len({_offset(at.astimezone(zone)) for at in near}) == 1
