"""What pages make of runs: folded, in strips, in weeks."""

from datetime import UTC, datetime, timedelta

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.errors import Unavailable
from lamplighter.services.looking import NOTED, VISIT, looked
from lamplighter.services.rollups import CostLine, StripDay
from lamplighter.services.runs.views import RunView, view
from lamplighter.store.looks import Look
from lamplighter.web.console.charts import HEIGHT, SPARK_HEIGHT, costs_of, share_of, strip_of, times_of
from lamplighter.web.console.pages.home import by_automation, first_error
from lamplighter.web.console.pages.more import week_of
from lamplighter.web.console.visit import Answer, url_with

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


def a_run(number: int, automation: str = "nightly", state: RunState = RunState.FAILED, reason: str = "exit") -> RunView:
    at = NOW + timedelta(minutes=number)
    return view(Run(f"run_{number:03}", automation, state, at, reason=reason, ended_at=at))


def test_what_ended_well_is_folded() -> None:
    runs = [a_run(number, state=RunState.SUCCEEDED, reason="") for number in range(9)]
    assert [len(one.runs) for one in by_automation(runs)] == [9]


def test_a_part_that_is_missing_is_not_passed_over() -> None:
    error = Unavailable("away")
    assert first_error(Answer([a_run(1)]), Answer(error=error)).error is error
    assert len(first_error(Answer([a_run(1)]), Answer([a_run(2)])).value) == 2


def test_a_strip_shows_on_each_day_what_part_went_wrong() -> None:
    days = [StripDay("1", 0, {}), StripDay("2", 4, {"succeeded": 3, "failed": 1}), StripDay("3", 1, {"timed_out": 1})]
    none, some, all_of_it = strip_of(days).days
    assert (none.good_height, none.bad_height) == (0, 0)
    assert some.good_height > some.bad_height >= 4
    assert some.good_height + some.bad_height == SPARK_HEIGHT
    assert (all_of_it.good_height, all_of_it.bad) == (0, 1)
    assert strip_of(days).words == "5 runs in 3 days, 2 of them failed"
    assert strip_of([StripDay("1", 0, {})]).words == "no run"


def test_a_bar_of_cost_is_as_high_as_the_day_was_dear() -> None:
    lines = [CostLine(str(day), 1, 1, 1, cost, 0, timedelta(), {}) for day, cost in enumerate((0.0, 10.0, 0.0001))]
    assert [one.height for one in costs_of(lines)] == [0.0, HEIGHT, 1.5]
    assert costs_of([]) == []


def test_times_are_those_of_ended_runs() -> None:
    runs = [
        view(Run(f"run_{number:03}", "nightly", RunState.SUCCEEDED, NOW, started_at=NOW + timedelta(seconds=number),
                 duration=timedelta(seconds=number)))
        for number in range(20, 0, -1)
    ]  # fmt: skip
    times = times_of([a_run(1), *runs])
    assert times is not None
    assert [one.run for one in times.runs][:2] == ["run_001", "run_002"]
    assert (times.median, times.slow, times.waited) == (10, 19, 10)
    assert times_of([a_run(1)]) is None
    assert share_of([3.0], 0.95) == 3.0


def test_a_visit_lasts_as_long_as_its_looks_follow_each_other() -> None:
    first = looked(None, NOW)
    assert first == Look(NOW, None)
    assert looked(first, NOW + NOTED / 2) is first
    later = looked(first, NOW + VISIT / 2)
    assert later == Look(NOW + VISIT / 2, None)
    back = looked(later, later.at + VISIT)
    assert back.before == later.at  # what ended since then is new
    assert looked(back, back.at + VISIT / 2).before == later.at  # and stays so during the visit


def test_a_week_has_each_run_on_its_day() -> None:
    late, early = a_run(719), a_run(720)  # 23:59, and midnight
    days = week_of(NOW.date(), [early, late], [])
    assert [[entry.runs[0].id for entry in day.entries] for day in days[:2]] == [[late.id], [early.id]]
    assert len(days) == 7
    crowd = week_of(NOW.date(), [a_run(number, f"a{number}") for number in range(40)], [])
    assert (len(crowd[0].entries), crowd[0].others) == (25, 15)


def test_an_address_with_some_of_it_changed() -> None:
    assert (
        url_with({"state": "failed", "before": "run_1"}, before=None, automation="a b&c")
        == "?state=failed&automation=a+b%26c"
    )
    assert url_with({}, state=None) == "?"
