"""Schedules against a walk over every minute, in real zones and around their clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import (
    Daily,
    Hourly,
    Weekly,
    When,
    count_runs,
    expression_of,
    last_run,
    next_run,
    next_runs,
)

MINUTE = timedelta(minutes=1)
CHANGES = [  # around these instants clocks changed: by an hour, half an hour, a day, at midnight, and not in summer
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 3, 8, 5, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 11, 1, 5, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2026, 3, 29, 1, tzinfo=UTC)),
]


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.integers(1, 20).map("*/{}".format),
        st.lists(number, min_size=1, max_size=3).map(lambda found: ",".join(map(str, found))),
        st.tuples(number, number).map(lambda pair: "{}-{}".format(*sorted(pair))),
    )


days = st.sampled_from(["* * *", "* * *", "* * 1-5", "1-15 * *", "*/2 * *", "13 * fri", "* 3,10,11 *", "* * 0"])
crons = st.builds(lambda minute, hour, day: parse_cron(f"{minute} {hour} {day}"), fields(0, 59), fields(0, 23), days)
schedules = st.one_of(
    st.builds(Hourly, st.integers(0, 59)),
    st.builds(Daily, st.integers(0, 23), st.integers(0, 59)),
    st.builds(Weekly, st.integers(0, 6), st.integers(0, 23), st.integers(0, 59)),
    crons,
)
near_a_change = st.builds(
    lambda change, away: (ZoneInfo(change[0]), change[1] + away),
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(hours=-30), timedelta(hours=30)),
)
anywhere = st.tuples(
    st.sampled_from(sorted(available_timezones())).map(ZoneInfo),
    st.datetimes(datetime(1980, 1, 1), datetime(2036, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001  bounds are naive
)
places = st.one_of(near_a_change, anywhere)


@given(places, schedules)
@settings(max_examples=150, deadline=None)
@example((ZoneInfo("America/New_York"), datetime(2026, 11, 1, 5, 50, tzinfo=UTC)), parse_cron("30,55 * * * *"))
@example((ZoneInfo("America/New_York"), datetime(2026, 3, 8, 7, 15, tzinfo=UTC)), parse_cron("0,30 2-3 * * *"))
def test_nothing_is_skipped_or_repeated(place: tuple[ZoneInfo, datetime], when: When) -> None:
    zone, start = place
    end = start + timedelta(hours=8)
    assert list(next_runs(start, when, zone, end)) == by_every_minute(start, end, when, zone)


@given(places, schedules)
@settings(max_examples=300, deadline=None)
def test_the_next_run_is_strictly_later_and_on_the_minute(place: tuple[ZoneInfo, datetime], when: When) -> None:
    zone, after = place
    found = next_run(after, when, zone)
    assert found is not None
    assert found > after
    assert found.astimezone(zone).second == 0
    assert next_run(found - timedelta(microseconds=1), when, zone) == found


@given(places, schedules, st.timedeltas(timedelta(0), timedelta(days=4)))
@settings(max_examples=100, deadline=None)
def test_counting_and_looking_back_agree_with_walking(
    place: tuple[ZoneInfo, datetime], when: When, span: timedelta
) -> None:
    zone, start = place
    walked = list(next_runs(start, when, zone, start + span))
    assert count_runs(start, when, zone, start + span) == len(walked)
    since = start + timedelta(microseconds=1)
    assert last_run(start + span, when, zone, since=since) == (walked[-1] if walked else None)


def by_every_minute(start: datetime, end: datetime, when: When, zone: ZoneInfo) -> list[datetime]:
    """The rule said plainly: look at every wall minute around, resolve it, keep what lies between."""
    expression = expression_of(when)  # type: ignore[arg-type]  the strategy makes no Once
    margin = timedelta(hours=60)
    wall = (start - margin).astimezone(zone).replace(second=0, microsecond=0, tzinfo=None)
    last = (end + margin).astimezone(zone).replace(tzinfo=None)
    found = set()
    while wall <= last:
        if wall.minute in expression.minutes and wall.hour in expression.hours and expression.count_in_day(wall.date()):
            first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
            exists = first.astimezone(zone).replace(tzinfo=None) == wall
            if expression.every_hour:
                found.update({first, second} if exists else ())
            else:
                found.add(first)
        wall += MINUTE
    return sorted(at for at in found if start < at <= end)
