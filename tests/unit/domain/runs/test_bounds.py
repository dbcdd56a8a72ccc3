"""Budgets of a day, places at work and memory: tables of cases."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations.admission import Fire, Hold, Origin, Replace, Skip, UsedUp, by_budget
from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.runs.at_work import Counted, Most, full, pause, too_little
from lamplighter.domain.runs.budget import DayBudget, DaySpent, Limits, midnight, next_midnight, used_up

HOUR = timedelta(hours=1)
LONDON = ZoneInfo("Europe/London")
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("limits", "spent", "under_way", "at_the_start"),
    [
        (Limits(), DaySpent(10**9, 1e9, HOUR), "", ""),
        (Limits(tokens=100), DaySpent(99), "", ""),
        (Limits(tokens=100), DaySpent(100), "", "may use 100 tokens a day and have used 100 tokens"),
        (Limits(tokens=100), DaySpent(101), "have used 101 tokens", "have used 101 tokens"),
        (Limits(cost=2.5), DaySpent(cost=2.5), "", "may use 2.5 USD a day and have used 2.5000 USD"),
        (Limits(cost=2.5), DaySpent(cost=2.6), "have used 2.6000 USD", "have used 2.6000 USD"),
        (Limits(time=HOUR), DaySpent(time=HOUR), "", "may use 1h a day"),
        (Limits(time=HOUR), DaySpent(time=HOUR * 1.5), "have used 1h30m", "have used 1h30m"),
        (Limits(cost=1, tokens=5), DaySpent(9, 0.5), "9 tokens", "9 tokens"),
    ],
)
def test_a_day_is_used_up_under_way_beyond_its_limit_and_at_a_start_by_reaching_it(
    limits: Limits, spent: DaySpent, under_way: str, at_the_start: str
) -> None:
    for starting, expected in ((False, under_way), (True, at_the_start)):
        found = used_up(DayBudget("All", limits), spent, starting=starting)
        assert (found is not None) is bool(expected)
        assert found is None or (found.reason == "budget" and expected in found.message)


@pytest.mark.parametrize(
    ("now", "zone", "began", "ends"),
    [
        (datetime(2026, 3, 2, 9, tzinfo=UTC), LONDON, "2026-03-02T00:00:00+00:00", "2026-03-03T00:00:00+00:00"),
        (datetime(2026, 3, 1, 23, 30, tzinfo=UTC), BERLIN, "2026-03-01T23:00:00+00:00", "2026-03-02T23:00:00+00:00"),
        (datetime(2026, 3, 29, 10, tzinfo=UTC), BERLIN, "2026-03-28T23:00:00+00:00", "2026-03-29T22:00:00+00:00"),
        (datetime(2026, 10, 25, 10, tzinfo=UTC), BERLIN, "2026-10-24T22:00:00+00:00", "2026-10-25T23:00:00+00:00"),
        (
            datetime(2026, 3, 2, 1, tzinfo=UTC), ZoneInfo("Asia/Kolkata"), "2026-03-01T18:30:00+00:00",
            "2026-03-02T18:30:00+00:00",
        ),
    ],
)  # fmt: skip
def test_a_day_begins_at_midnight_of_the_city_also_where_clocks_change(
    now: datetime, zone: ZoneInfo, began: str, ends: str
) -> None:
    assert midnight(now, zone).astimezone(UTC).isoformat() == began
    assert next_midnight(now, zone).astimezone(UTC).isoformat() == ends


def test_events_and_deliveries_wait_for_the_next_day_and_the_rest_is_skipped() -> None:
    gone = UsedUp("it is used up", datetime(2026, 3, 3, tzinfo=UTC))
    assert by_budget(Fire(), None, Origin.SLOT) == Fire()
    assert by_budget(Replace(("run_1",)), gone, Origin.SLOT) == Skip(SkipReason.BUDGET, why="it is used up")
    assert by_budget(Fire(), gone, Origin.HAND) == Skip(SkipReason.BUDGET, why="it is used up")
    assert by_budget(Fire(), gone, Origin.EVENTS) == Hold(until=gone.until)
    assert by_budget(Fire(), gone, Origin.DELIVERY) == Hold(until=gone.until)
    assert by_budget(Hold("run_1"), gone, Origin.EVENTS) == Hold("run_1"), "what stands in its way comes first"


def run(name: str, rig: str = "", preset: str = "", login: str = "") -> Counted:
    return Counted(name, rig, preset, login)


@pytest.mark.parametrize(
    ("most", "one", "at_work", "before", "told"),
    [
        (Most(), run("n", "web"), [run("a", "web")] * 9, [], ""),
        (Most(runs=2), run("n"), [run("a")], [], ""),
        (Most(runs=2), run("n"), [run("a"), run("b", "web")], [], "2 of 2 runs of the city"),
        (Most(per_rig=1), run("n", "web"), [run("a", "api")], [], ""),
        (Most(per_rig=1), run("n", "web"), [run("a", "web")], [], "1 of 1 run in rig web"),
        (Most(per_rig=1), run("n"), [run("a"), run("b")], [], ""),
        (Most(per_rig=1, rigs={"web": 2}), run("n", "web"), [run("a", "web")], [], ""),
        (Most(per_rig=1, rigs={"web": 0}), run("n", "web"), [run("a", "web")], [], ""),
        (Most(rigs={"web": 1}), run("n", "api"), [run("a", "api")], [], ""),
        (Most(per_preset=1), run("n", "", "claude"), [run("a", "", "codex")], [], ""),
        (Most(presets={"claude": 1}), run("n", "", "claude"), [run("a", "", "claude")], [], "of preset claude"),
        (Most(per_login=1), run("n", login="/a x"), [run("a", login="/b x")], [], ""),
        (Most(per_login=1), run("n", login="/a x"), [run("a", login="/a x")], [], "with the login /a is"),
        (Most(runs=2), run("n"), [run("a")], [run("w")], "2 of 2 runs of the city"),
        (Most(runs=2, per_rig=1), run("n"), [run("a", "web")], [run("w", "web")], ""),
    ],
)
def test_a_run_waits_while_its_places_are_taken_by_those_at_work_and_those_before_it(
    most: Most, one: Counted, at_work: list[Counted], before: list[Counted], told: str
) -> None:
    found = full(most, one, at_work, before)
    assert (found is not None) is bool(told)
    assert found is None or told in found.told


def test_those_far_behind_look_less_often_and_all_within_a_minute() -> None:
    assert [pause(ahead).total_seconds() for ahead in (0, 9, 10, 50, 10_000)] == [2, 2, 4, 12, 60]


@pytest.mark.parametrize(
    ("available", "wanted", "waits"), [(None, 512, False), (511, 512, True), (512, 512, False), (1, 0, False)]
)
def test_little_memory_is_told_with_both_numbers(available: int | None, wanted: int, *, waits: bool) -> None:
    told = too_little(available, wanted)
    assert bool(told) is waits
    assert not waits or ("511 MB" in told and "512 MB" in told)
