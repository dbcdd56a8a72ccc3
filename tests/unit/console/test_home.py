"""What pages make of runs: folded, in strips, in weeks."""

from datetime import UTC, datetime, timedelta

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.errors import Unavailable
from lamplighter.services.runs.views import RunView, view
from lamplighter.web.console.pages.automations import STRIP, latest_by_automation
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


def test_the_strip_shows_the_newest_runs_oldest_first() -> None:
    newest_first = [a_run(number) for number in range(30, 0, -1)]
    strip = latest_by_automation(newest_first)["nightly"]
    assert [run.id for run in strip] == [f"run_{number:03}" for number in range(30 - STRIP + 1, 31)]


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
