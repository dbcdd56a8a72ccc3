from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations.decisions import (
    ActiveRun,
    Outcome,
    PrecheckResult,
    Quiet,
    RetryAt,
    SkipReason,
    Streak,
    Switches,
    blocked_by,
    failures_after_edit,
    precheck_result,
    quiet,
    retry,
    streak,
)
from lamplighter.domain.automations.explain import LastRun, LastSkip, Situation, explain
from lamplighter.domain.automations.forecast import Firing, forecast
from lamplighter.domain.automations.gates import Due, NotDue
from lamplighter.domain.automations.model import (
    Automation,
    Cooldown,
    Cron,
    Event,
    Exec,
    Manual,
    Schedule,
    Trigger,
)
from lamplighter.domain.automations.policies import Overlap, Policies, Retry
from lamplighter.domain.automations.state import Timing, TriggerState, registered
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import Daily

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
HOUR = timedelta(hours=1)
DAILY = Trigger("schedule", Schedule(Daily(9, 0)))


@pytest.mark.parametrize(
    ("switches", "automatic", "by_hand"),
    [
        (Switches(), None, None),
        (Switches(paused=True), SkipReason.PAUSED, SkipReason.PAUSED),
        (Switches(city_suspended=True), SkipReason.CITY_SUSPENDED, SkipReason.CITY_SUSPENDED),
        (Switches(rig_suspended=True), SkipReason.RIG_SUSPENDED, SkipReason.RIG_SUSPENDED),
        (Switches(suspended=True), SkipReason.AUTOMATION_SUSPENDED, SkipReason.AUTOMATION_SUSPENDED),
        (Switches(enabled=False), SkipReason.DISABLED, None),
        (Switches(left_out=True), SkipReason.LEFT_OUT, None),
        (Switches(enabled=False, paused=True), SkipReason.PAUSED, SkipReason.PAUSED),
    ],
)
def test_the_widest_switch_that_is_off_is_the_reason(
    switches: Switches, automatic: SkipReason | None, by_hand: SkipReason | None
) -> None:
    assert blocked_by(switches) is automatic
    assert blocked_by(switches, by_hand=True) is by_hand


def test_failures_are_tried_again_with_growing_delays_and_then_no_more() -> None:
    policy = Retry(3, timedelta(seconds=30), timedelta(seconds=100))
    delays = [retry(policy, Outcome.FAILED, attempt, NOW) for attempt in range(4)]
    assert delays == [
        RetryAt(NOW + timedelta(seconds=30), 1),
        RetryAt(NOW + timedelta(seconds=60), 2),
        RetryAt(NOW + timedelta(seconds=100), 3),
        None,
    ]
    assert retry(policy, Outcome.TIMED_OUT, 0, NOW) is not None
    assert retry(Retry(), Outcome.FAILED, 0, NOW) is None


@pytest.mark.parametrize("outcome", [Outcome.CANCELED, Outcome.NEEDS_HUMAN, Outcome.SUCCEEDED, Outcome.SKIPPED])
def test_what_a_person_decides_is_not_tried_again(outcome: Outcome) -> None:
    assert retry(Retry(3), outcome, 0, NOW) is None


def test_case_12_a_vanished_folder_counts_as_a_failure_and_the_fifth_disables() -> None:
    failures = 0
    for expected in (False, False, False, False, True):
        after = streak(failures, Outcome.SKIPPED, limit=5, by_hand=False, reason=SkipReason.PROJECT_MISSING)
        failures = after.failures
        assert after.disable is expected


def test_case_13_a_success_after_four_failures_starts_the_count_anew() -> None:
    assert streak(4, Outcome.SUCCEEDED, limit=5, by_hand=False) == Streak(0)
    assert streak(4, Outcome.SUCCEEDED, limit=5, by_hand=True) == Streak(0)


def test_case_14_the_fifth_failure_disables_in_the_same_step() -> None:
    assert streak(4, Outcome.FAILED, limit=5, by_hand=False) == Streak(5, disable=True)
    assert streak(4, Outcome.TIMED_OUT, limit=5, by_hand=False) == Streak(5, disable=True)
    assert streak(99, Outcome.FAILED, limit=0, by_hand=False) == Streak(100)


def test_case_15_failures_of_runs_by_hand_do_not_count() -> None:
    failures = 3
    for _ in range(10):
        after = streak(failures, Outcome.FAILED, limit=5, by_hand=True)
        assert after == Streak(3)
        failures = after.failures


def test_an_end_that_is_no_failure_leaves_the_count() -> None:
    assert streak(3, Outcome.NEEDS_HUMAN, limit=5, by_hand=False) == Streak(3)
    assert streak(3, Outcome.SKIPPED, limit=5, by_hand=False, reason=SkipReason.NOTHING_TO_DO) == Streak(3)


def test_case_16_enabling_starts_the_count_anew_and_renaming_does_not() -> None:
    assert failures_after_edit(5, was_enabled=False, is_enabled=False) == 5
    assert failures_after_edit(5, was_enabled=False, is_enabled=True) == 0
    assert failures_after_edit(3, was_enabled=True, is_enabled=True) == 3


def test_silence_is_told_once_until_something_fires() -> None:
    armed, last = NOW - 9 * HOUR, NOW - 5 * HOUR
    assert quiet(4 * HOUR, last, armed, NOW) == Quiet(last, 5 * HOUR)
    assert quiet(4 * HOUR, None, armed, NOW) == Quiet(armed, 9 * HOUR)
    assert quiet(4 * HOUR, last, armed, NOW, alarmed_at=NOW - HOUR) is None
    assert quiet(4 * HOUR, last, armed, NOW, alarmed_at=NOW - 8 * HOUR) == Quiet(last, 5 * HOUR)
    assert quiet(6 * HOUR, last, armed, NOW) is None
    assert quiet(4 * HOUR, last, NOW - HOUR, NOW) is None
    assert quiet(None, last, armed, NOW) is None


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (0, PrecheckResult.GO),
        (75, PrecheckResult.NOTHING_TO_DO),
        (1, PrecheckResult.FAILED),
        (None, PrecheckResult.FAILED),
    ],
)
def test_a_precheck_goes_stops_or_fails(code: int | None, result: PrecheckResult) -> None:
    assert precheck_result(code) is result


def test_a_week_is_foretold_in_order_across_automations() -> None:
    nightly = Automation("nightly", Exec("x"), (Trigger("cron", Cron(parse_cron("0 3 * * mon"))),))
    sweep = Automation("sweep", Exec("x"), (Trigger("cooldown", Cooldown(2 * timedelta(days=1))),), rig="a")
    silent = Automation("silent", Exec("x"), (Trigger("m", Manual()), Trigger("e", Event("bead.*"))))
    states = {("sweep:rig:a", "cooldown"): TriggerState(NOW, last_fired_at=NOW - timedelta(days=1))}
    found = list(forecast([nightly, sweep, silent], lambda _: ZONE, states, (NOW, NOW + timedelta(days=7))))
    assert found == sorted(found)
    assert Firing(datetime(2026, 6, 29, 3, tzinfo=UTC), "nightly", "cron") in found
    assert [one.at.day for one in found if one.automation == "sweep:rig:a"] == [24, 26, 28, 30]
    never = list(forecast([sweep], lambda _: ZONE, {}, (NOW, NOW + HOUR)))
    assert [one.at for one in never] == [NOW]


def test_an_explanation_says_what_holds_it_back_first() -> None:
    told = explain(
        Situation(
            daily(), NOW, ZONE, blocked=SkipReason.PAUSED, checks={"schedule": Due("x", NOW, NOW, "schedule: matched")}
        )
    )
    assert told == (
        "The city is paused: nothing fires until `lamp resume`.",
        "Trigger `schedule` (Daily at 09:00) is due, but it is held back: its time has come.",
        "It has not run yet.",
    )


def test_an_explanation_tells_the_next_time_the_last_run_and_the_last_slot_passed_over() -> None:
    told = explain(
        Situation(
            daily(),
            NOW,
            ZONE,
            checks={"schedule": NotDue("why", NOW + 21 * HOUR)},
            failures=2,
            last_run=LastRun("run_1", "has failed", NOW - 27 * HOUR, "exit_code_1"),
            last_skip=LastSkip(NOW - 3 * HOUR, SkipReason.OVERLAP, 2),
        )
    )
    assert told == (
        "Trigger `schedule` (Daily at 09:00) is not due: why. It comes next at 2026-06-24 09:00:00 UTC, in 21 h.",
        "It last ran at 2026-06-22 09:00:00 UTC: run run_1 has failed (exit code 1).",
        "It last passed over a time at 2026-06-23 09:00:00 UTC, 2 times: an earlier run was still under way.",
        "It has failed 2 times in a row; at 5 it is disabled.",
    )


def test_a_reason_that_only_repeats_the_state_of_the_last_run_is_left_out() -> None:
    last = LastRun("run_1", "has succeeded", NOW - 27 * HOUR, "succeeded")
    told = explain(Situation(daily(), NOW, ZONE, last_run=last))
    assert "It last ran at 2026-06-22 09:00:00 UTC: run run_1 has succeeded." in told


@pytest.mark.parametrize("policy", list(Overlap))
def test_an_explanation_names_the_run_under_way_and_the_policy(policy: Overlap) -> None:
    told = explain(Situation(daily(overlap=policy), NOW, ZONE, active=(ActiveRun("run_7"),)))
    assert told[0].startswith("Run run_7 is under way")
    assert told[0].endswith(f"(overlap = {policy}).")


def test_an_explanation_works_from_state_alone() -> None:
    state = registered(DAILY.gate, NOW, Timing(ZONE))
    told = explain(
        Situation(daily(), NOW, ZONE, states={"schedule": state}, disabled_reason="it failed 5 times in a row")
    )
    assert told[0] == "It was disabled because it failed 5 times in a row."
    assert told[1].endswith("has not been looked at yet. It comes next at 2026-06-24 09:00:00 UTC, in 21 h.")
    bare = explain(Situation(daily(), NOW, ZONE, last_skip=LastSkip(NOW, SkipReason.CITY_SUSPENDED)))
    assert bare[-1] == "It last passed over a time at 2026-06-23 12:00:00 UTC: city suspended."


@pytest.mark.parametrize("reason", list(SkipReason))
def test_every_reason_has_a_sentence(reason: SkipReason) -> None:
    assert explain(Situation(daily(), NOW, ZONE, blocked=reason))[0].endswith(".")


def daily(*, overlap: Overlap = Overlap.SKIP) -> Automation:
    return Automation("triage", Exec("x"), (DAILY,), policies=Policies(overlap=overlap))
