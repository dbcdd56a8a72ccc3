"""The week of the calendar: no day looks empty on which something fires."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from lamplighter.services.automations.views import FiringView
from lamplighter.web.console.pages.more import OF_EACH, week_of

MONDAY = date(2026, 11, 16)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def firing(name: str, at: datetime) -> FiringView:
    return FiringView(name, "cron", at, at.isoformat(), "UTC")


def test_an_automation_whose_times_are_not_all_worked_out_goes_on_until_the_end_of_the_week() -> None:
    often = [firing("often", NOON + timedelta(minutes=n)) for n in range(OF_EACH)]
    nightly = [firing("nightly", NOON + timedelta(days=n)) for n in range(7)]
    days = week_of(MONDAY, [], sorted([*often, *nightly], key=lambda one: one.at))
    assert [[(one.automation, len(one.firings), one.goes_on) for one in day.entries] for day in days] == [
        [("often", OF_EACH, True), ("nightly", 1, False)],
        *([[("nightly", 1, False), ("often", 0, True)]] * 6),
    ]


def test_an_automation_whose_times_are_all_worked_out_ends_with_the_last() -> None:
    days = week_of(MONDAY, [], [firing("once", NOON)])
    assert [[one.goes_on for one in day.entries] for day in days] == [[False], [], [], [], [], [], []]


def test_what_fires_at_an_even_pace_tells_the_pace() -> None:
    even = [firing("even", NOON + timedelta(minutes=5 * n)) for n in range(OF_EACH)]
    uneven = [firing("uneven", NOON + timedelta(minutes=5 * n + n % 2)) for n in range(OF_EACH)]
    days = week_of(MONDAY, [], sorted([*even, *uneven], key=lambda one: one.at))
    assert {one.automation: one.every for one in days[6].entries} == {"even": timedelta(minutes=5), "uneven": None}


def test_a_week_in_a_zone_marks_when_clocks_are_changed() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    late = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)  # half past one of the next day there
    days = week_of(date(2026, 10, 19), [], [firing("late", late)], berlin)
    assert [len(day.entries) for day in days] == [0, 0, 0, 0, 0, 0, 1]
    assert days[6].load[1] == 1
    assert [list(day.shifts) for day in days] == [[]] * 6 + [["clocks go back 1 h in Europe/Berlin"]]
    spring = week_of(date(2026, 3, 23), [], [], berlin)
    assert spring[6].shifts == ["clocks go forward 1 h in Europe/Berlin"]
    assert all(not day.shifts for day in week_of(date(2026, 10, 19), [], [firing("late", late)]))
