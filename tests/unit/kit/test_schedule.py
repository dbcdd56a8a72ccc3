from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from lamplighter.kit.cron import CronExpression, parse_cron
from lamplighter.kit.schedule import (
    Daily,
    Hourly,
    Once,
    Weekly,
    When,
    badge,
    count_runs,
    human_schedule,
    last_run,
    next_run,
    next_runs,
    slot_key,
    zone_named,
)

NEW_YORK, BERLIN, SYDNEY = "America/New_York", "Europe/Berlin", "Australia/Sydney"
SUNDAY, FRIDAY = 0, 5

# The 29 rows of the clock-change table: zone, after (wall time with its offset), schedule, next (likewise).
ROWS = [
    (1, NEW_YORK, "2026-03-08T00:00-05:00", Daily(2, 30), "2026-03-08T03:30-04:00"),
    (2, NEW_YORK, "2026-03-08T01:45-05:00", Daily(2, 30), "2026-03-08T03:30-04:00"),
    (3, NEW_YORK, "2026-03-07T02:30-05:00", Daily(2, 30), "2026-03-08T03:30-04:00"),
    (4, NEW_YORK, "2026-03-08T03:30-04:00", Daily(2, 30), "2026-03-09T02:30-04:00"),
    (5, NEW_YORK, "2026-03-08T01:45-05:00", Hourly(30), "2026-03-08T03:30-04:00"),
    (6, NEW_YORK, "2026-11-01T00:00-04:00", Daily(1, 30), "2026-11-01T01:30-04:00"),
    (7, NEW_YORK, "2026-11-01T01:30-04:00", Daily(1, 30), "2026-11-02T01:30-05:00"),
    (8, NEW_YORK, "2026-11-01T01:30-05:00", Daily(1, 30), "2026-11-02T01:30-05:00"),
    (9, NEW_YORK, "2026-11-01T01:30-04:00", Hourly(30), "2026-11-01T01:30-05:00"),
    (10, NEW_YORK, "2026-11-01T01:30-05:00", Hourly(30), "2026-11-01T02:30-05:00"),
    (11, BERLIN, "2026-03-29T00:00+01:00", Daily(2, 30), "2026-03-29T03:30+02:00"),
    (12, BERLIN, "2026-10-25T00:00+02:00", Daily(2, 30), "2026-10-25T02:30+02:00"),
    (13, BERLIN, "2026-10-25T02:30+02:00", Daily(2, 30), "2026-10-26T02:30+01:00"),
    (14, "Europe/London", "2026-03-29T00:30+00:00", Daily(1, 15), "2026-03-29T02:15+01:00"),
    (15, SYDNEY, "2026-10-04T00:00+10:00", Daily(2, 30), "2026-10-04T03:30+11:00"),
    (16, SYDNEY, "2026-04-05T00:00+11:00", Daily(2, 30), "2026-04-05T02:30+11:00"),
    (17, "America/Havana", "2026-03-07T12:00-05:00", Daily(0, 30), "2026-03-08T01:30-04:00"),
    (18, "America/Havana", "2026-03-07T23:45-05:00", Daily(0, 30), "2026-03-08T01:30-04:00"),
    (19, "America/Havana", "2026-03-07T12:00-05:00", Weekly(SUNDAY, 0, 30), "2026-03-08T01:30-04:00"),
    (20, "America/Santiago", "2026-09-05T12:00-04:00", Daily(0, 30), "2026-09-06T01:30-03:00"),
    (21, "Australia/Lord_Howe", "2026-10-04T01:40+10:30", Hourly(5), "2026-10-04T03:05+11:00"),
    (22, NEW_YORK, "2026-03-07T12:00-05:00", Weekly(SUNDAY, 2, 30), "2026-03-08T03:30-04:00"),
    (23, "UTC", "2026-06-23T09:00+00:00", Daily(9, 0), "2026-06-24T09:00+00:00"),
    (24, "UTC", "2026-06-23T12:00+00:00", Weekly(FRIDAY, 17, 0), "2026-06-26T17:00+00:00"),
    (25, "UTC", "2026-06-26T17:00+00:00", Weekly(FRIDAY, 17, 0), "2026-07-03T17:00+00:00"),
    (26, "UTC", "2026-06-23T10:12+00:00", Hourly(5), "2026-06-23T11:05+00:00"),
    (26, "UTC", "2026-06-23T10:02+00:00", Hourly(5), "2026-06-23T10:05+00:00"),
    (27, "UTC", "2026-12-31T23:59+00:00", Daily(0, 0), "2027-01-01T00:00+00:00"),
    (28, "Asia/Kolkata", "2026-06-23T10:12+05:30", Hourly(5), "2026-06-23T11:05+05:30"),
    (29, "Asia/Shanghai", "2026-06-23T23:30+08:00", Daily(9, 0), "2026-06-24T09:00+08:00"),
]


@pytest.mark.parametrize(("row", "zone", "after", "when", "expected"), ROWS)
def test_the_clock_change_table_holds_row_by_row(row: int, zone: str, after: str, when: When, expected: str) -> None:
    assert next_run(at(after), when, ZoneInfo(zone)) == at(expected), f"row {row}"


@pytest.mark.parametrize(("row", "zone", "after", "when", "expected"), ROWS)
def test_a_cron_expression_obeys_the_same_table(row: int, zone: str, after: str, when: When, expected: str) -> None:
    assert next_run(at(after), cron_of(when), ZoneInfo(zone)) == at(expected), f"row {row}"


def test_every_quarter_of_an_hour_follows_real_time_through_the_repeated_hour() -> None:
    found = runs("2026-11-01T00:50-04:00", "2026-11-01T02:20-05:00", parse_cron("*/15 * * * *"), NEW_YORK)
    assert len(found) == 10
    assert {b - a for a, b in pairwise(found)} == {timedelta(minutes=15)}


def test_every_quarter_of_an_hour_follows_real_time_through_the_missing_hour() -> None:
    found = runs("2026-03-08T01:50-05:00", "2026-03-08T03:20-04:00", parse_cron("*/15 * * * *"), NEW_YORK)
    assert [one.astimezone(ZoneInfo(NEW_YORK)).strftime("%H:%M") for one in found] == ["03:00", "03:15"]


def test_minutes_of_a_named_hour_come_once_though_the_hour_comes_twice() -> None:
    found = runs("2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00", parse_cron("*/15 1 * * *"), NEW_YORK)
    assert found == [at(f"2026-11-01T01:{minute:02}-04:00") for minute in (0, 15, 30, 45)]


def test_times_moved_out_of_a_gap_join_those_already_there() -> None:
    found = runs("2026-03-08T00:00-05:00", "2026-03-08T05:00-04:00", parse_cron("0,30 1-3 * * *"), NEW_YORK)
    local = [one.astimezone(ZoneInfo(NEW_YORK)).strftime("%H:%M") for one in found]
    assert local == ["01:00", "01:30", "03:00", "03:30"]


def test_a_day_that_a_zone_left_out_moves_to_the_next_one() -> None:
    found = runs("2011-12-29T12:00-10:00", "2011-12-31T12:00+14:00", Daily(9, 0), "Pacific/Apia")
    assert found == [at("2011-12-31T09:00+14:00")]


def test_an_hourly_schedule_has_25_runs_on_a_25_hour_day() -> None:
    assert len(runs("2026-10-31T23:59-04:00", "2026-11-01T23:59-05:00", Hourly(30), NEW_YORK)) == 25


def test_day_of_month_or_day_of_week_as_in_vixie_cron() -> None:
    found = runs("2026-06-01T00:00+00:00", "2026-06-30T00:00+00:00", parse_cron("0 9 13 * fri"), "UTC")
    assert [one.day for one in found] == [5, 12, 13, 19, 26]


def test_a_field_that_starts_with_a_star_narrows_the_other_day_field() -> None:
    found = runs("2026-06-01T00:00+00:00", "2026-06-30T00:00+00:00", parse_cron("0 9 */2 * fri"), "UTC")
    assert [one.day for one in found] == [5, 19]


def test_case_5_quarter_hours_of_working_days_match_on_a_wednesday_morning() -> None:
    working = parse_cron("*/15 9-17 * * 1-5")
    assert next_run(at("2026-06-24T10:29+00:00"), working, ZoneInfo("UTC")) == at("2026-06-24T10:30+00:00")
    assert next_run(at("2026-06-26T17:45+00:00"), working, ZoneInfo("UTC")) == at("2026-06-29T09:00+00:00")


def test_seven_is_sunday() -> None:
    utc, after = ZoneInfo("UTC"), at("2026-06-23T09:00+00:00")
    assert next_run(after, parse_cron("0 0 * * 7"), utc) == next_run(after, parse_cron("0 0 * * 0"), utc)
    assert next_run(after, parse_cron("0 0 * * sun"), utc) == at("2026-06-28T00:00+00:00")


def test_a_once_schedule_comes_once() -> None:
    pin = Once(at("2026-06-23T09:00+02:00"))
    assert next_run(at("2026-06-23T06:59+00:00"), pin, ZoneInfo("UTC")) == at("2026-06-23T07:00+00:00")
    assert next_run(at("2026-06-23T07:00+00:00"), pin, ZoneInfo("UTC")) is None


def test_the_end_of_the_calendar_is_no_error() -> None:
    assert next_run(datetime(9999, 12, 31, 23, 59, tzinfo=UTC), Daily(9, 0), ZoneInfo("UTC")) is None


def test_seconds_are_cut_and_the_next_minute_is_found() -> None:
    assert next_run(at("2026-06-23T10:04:59.999999+00:00"), Hourly(5), ZoneInfo("UTC")) == at("2026-06-23T10:05+00:00")


def test_the_two_passes_of_a_repeated_minute_share_a_slot_only_where_the_wall_counts() -> None:
    zone, first, second = ZoneInfo(NEW_YORK), at("2026-11-01T01:30-04:00"), at("2026-11-01T01:30-05:00")
    assert slot_key(first, Daily(1, 30), zone) == slot_key(second, Daily(1, 30), zone)
    assert slot_key(first, Daily(1, 30), zone) == "2026-11-01T01:30[America/New_York]"
    assert slot_key(first, Hourly(30), zone) != slot_key(second, Hourly(30), zone)
    assert slot_key(first, Hourly(30), zone) == "2026-11-01T05:30Z"
    assert slot_key(first, Once(first), zone) == "2026-11-01T05:30:00.000000Z"


def test_the_last_run_at_or_before_an_instant() -> None:
    utc = ZoneInfo("UTC")
    late = at("2026-06-26T14:00+00:00")
    assert last_run(late, Daily(9, 0), utc, since=at("2026-06-23T09:00+00:00")) == at("2026-06-26T09:00+00:00")
    dense = parse_cron("* * 1 * *")
    assert last_run(at("2026-06-30T00:00+00:00"), dense, utc, since=at("2020-01-01T00:00+00:00")) == at(
        "2026-06-01T23:59+00:00"
    )
    assert last_run(at("2026-06-23T09:00+00:00"), Daily(9, 0), utc, since=at("2026-06-23T09:00+00:00")) == at(
        "2026-06-23T09:00+00:00"
    )
    assert last_run(at("2026-06-23T08:59+00:00"), Daily(9, 0), utc, since=at("2026-06-22T09:01+00:00")) is None


def test_a_year_of_minutes_is_counted_exactly() -> None:
    zone, start, end = ZoneInfo(NEW_YORK), at("2026-01-01T00:00-05:00"), at("2027-01-01T00:00-05:00")
    assert count_runs(start, parse_cron("* * * * *"), zone, end) == 365 * 24 * 60
    assert count_runs(start, Hourly(30), zone, end) == 365 * 24
    assert count_runs(start, Daily(2, 30), zone, end) == 365
    assert count_runs(start, Once(end), zone, end) == 1


@pytest.mark.parametrize(
    ("when", "words", "mark"),
    [
        (Hourly(5), "Hourly at :05", "Hourly"),
        (Daily(9, 0), "Daily at 09:00", "Daily"),
        (Weekly(1, 14, 30), "Weekly on Mon at 14:30", "Weekly"),
        (Once(datetime(2026, 6, 23, 7, tzinfo=UTC)), "Once at 2026-06-23 09:00 CEST", "Once"),
        (parse_cron("0 3 * * *"), "At 03:00 every day", "Cron"),
        (
            parse_cron("*/15 9-17 * * mon-fri"),
            "Every 15 minutes from 09:00 through 17:59 on Monday through Friday",
            "Cron",
        ),
    ],
)
def test_every_schedule_has_a_plain_form_and_a_badge(when: When, words: str, mark: str) -> None:
    assert human_schedule(when, ZoneInfo(BERLIN)).startswith(words)
    assert badge(when) == mark


def test_a_mistyped_zone_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match="`Europe/Berln` is not a time zone; did you mean `Europe/Berlin`"):
        zone_named("Europe/Berln")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../UTC", "Mars/Olympus\0", "Europe", "Q" * 300])
def test_no_rubbish_is_a_zone(name: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone"):
        zone_named(name)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def runs(after: str, until: str, when: When, zone: str) -> list[datetime]:
    return list(next_runs(at(after), when, ZoneInfo(zone), at(until)))


def cron_of(when: When) -> CronExpression:
    match when:
        case Hourly(minute):
            return parse_cron(f"{minute} * * * *")
        case Daily(hour, minute):
            return parse_cron(f"{minute} {hour} * * *")
        case Weekly(weekday, hour, minute):
            return parse_cron(f"{minute} {hour} * * {weekday}")
        case _:
            raise AssertionError(when)
