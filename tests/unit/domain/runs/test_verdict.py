from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.runs.budget import Limits, Spent, exceeded, total
from lamplighter.domain.runs.lease import Lease, claim
from lamplighter.domain.runs.model import ACTIVE, TERMINAL, Run, RunState
from lamplighter.domain.runs.verdict import (
    Fail,
    Leave,
    Policy,
    SessionSeen,
    SessionState,
    TimeOut,
    verdict,
)
from lamplighter.domain.sessions.transcript import Usage

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
POLICY = Policy()
ALIVE = SessionSeen(SessionState.RUNNING, alive=True, last_activity=NOW)
ENDED = SessionSeen(SessionState.ENDED, alive=False, exit_status=0)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def running(**given: Any) -> Run:
    known = {
        "session_id": "ses_1",
        "deadline_at": NOW + timedelta(hours=1),
        "last_activity_at": NOW,
        "started_at": ago(hours=1),
    }
    return Run("run_1", "sweep", RunState.RUNNING, ago(hours=1), **known | given)


def test_a_run_past_its_deadline_with_a_session_is_timed_out_and_its_session_stopped() -> None:
    """Case 25."""
    assert verdict(running(deadline_at=ago(seconds=1)), ALIVE, NOW, POLICY) == TimeOut(stop_session=True)
    assert verdict(running(deadline_at=ago(seconds=1)), None, NOW, POLICY) == TimeOut(stop_session=True)


def test_a_run_past_its_deadline_without_a_session_has_failed() -> None:
    """Case 26."""
    late = verdict(running(deadline_at=ago(seconds=1), session_id=None), None, NOW, POLICY)
    assert isinstance(late, Fail)
    assert late.reason == "missing_session"


def test_a_session_that_cannot_be_asked_about_changes_nothing() -> None:
    """Case 27."""
    assert verdict(running(last_activity_at=ago(hours=1)), None, NOW, POLICY) == Leave()


def test_only_a_session_known_to_be_dead_fails_its_run() -> None:
    """Case 28."""
    dead = verdict(running(), replace(ALIVE, alive=False), NOW, POLICY)
    assert isinstance(dead, Fail)
    assert (dead.reason, dead.stop_session) == ("sandbox_dead", True)
    assert verdict(running(), replace(ALIVE, alive=None), NOW, POLICY) == Leave()
    assert verdict(running(), ALIVE, NOW, POLICY) == Leave()


def test_an_ended_session_leaves_a_completed_run_alone() -> None:
    """Case 29."""
    assert verdict(running(completion_id="c"), ENDED, NOW, POLICY) == Leave()


def test_a_program_that_exits_without_completing_fails_its_run_at_once() -> None:
    ended = verdict(running(), replace(ENDED, stop_reason="canceled"), NOW, POLICY)
    assert isinstance(ended, Fail)
    assert ended.reason == "no_completion"
    assert ended.error == "The program ended with exit code 0 (canceled) without completing the run."


@pytest.mark.parametrize("state", [SessionState.PAUSED, SessionState.MISSING])
def test_any_other_state_of_the_session_fails_the_run_by_its_name(state: SessionState) -> None:
    found = verdict(running(), SessionSeen(state), NOW, POLICY)
    assert isinstance(found, Fail)
    assert found.reason == f"session_state_{state}"


@pytest.mark.parametrize("state", sorted(ACTIVE - {RunState.RUNNING}))
def test_a_deadline_binds_every_state_that_is_not_an_end(state: RunState) -> None:
    waiting = replace(running(session_id=None), state=state)
    assert verdict(waiting, None, NOW, POLICY) == Leave()
    assert verdict(replace(waiting, deadline_at=ago(seconds=1)), None, NOW, POLICY) == TimeOut(stop_session=False)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_has_ended_is_left_alone(state: RunState) -> None:
    ended = replace(running(deadline_at=ago(hours=1)), state=state)
    assert verdict(ended, ENDED, NOW, POLICY) == Leave()


def test_a_start_that_was_cut_off_waits_for_whoever_resumes_it() -> None:
    cut_off = running(session_id=None)
    assert verdict(cut_off, None, NOW, POLICY) == Leave()
    quiet = replace(cut_off, last_activity_at=ago(minutes=31))
    assert isinstance(verdict(quiet, None, NOW, POLICY), Fail)
    held = replace(quiet, lease=claim(Lease(), "w1", NOW))
    assert verdict(held, None, NOW, POLICY) == Leave()


def test_silence_alone_is_told_and_ends_nothing_unless_wished() -> None:
    since = ago(minutes=45)
    silent = replace(ALIVE, last_activity=since)
    quiet = running(last_activity_at=ago(minutes=50))
    assert verdict(quiet, silent, NOW, POLICY) == Leave(quiet_since=since)
    assert verdict(quiet, replace(silent, last_activity=NOW), NOW, POLICY) == Leave()


def test_silence_ends_a_run_where_that_is_wished() -> None:
    silent = replace(ALIVE, last_activity=ago(minutes=45))
    quiet = running(last_activity_at=ago(minutes=50))
    strict = replace(POLICY, idle_timeout=timedelta(minutes=40))
    assert verdict(quiet, silent, NOW, strict) == Fail("idle", "Its session said nothing for 40m.", stop_session=True)
    patient = replace(POLICY, idle_timeout=timedelta(minutes=45))
    assert verdict(quiet, silent, NOW, patient) == Leave(quiet_since=ago(minutes=45))
    taken_up = running(last_activity_at=ago(minutes=1))
    assert verdict(taken_up, silent, NOW, strict) == Leave()


def test_a_session_that_cannot_say_when_it_spoke_is_not_ended_for_silence() -> None:
    strict = Policy(idle=timedelta(hours=2), idle_timeout=timedelta(minutes=40))
    mute = SessionSeen(SessionState.RUNNING, alive=True, last_activity=None)
    assert verdict(running(last_activity_at=ago(minutes=50)), mute, NOW, strict) == Leave()
    assert verdict(running(last_activity_at=None), SessionSeen(SessionState.RUNNING), NOW, strict) == Leave()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(cost=0.5), "budget_cost"),
        (Limits(tokens=100), "budget_tokens"),
        (Limits(time=timedelta(minutes=59)), "budget_time"),
    ],
)
def test_a_run_over_its_budget_ends_for_that_reason(limits: Limits, reason: str) -> None:
    over = verdict(running(), ALIVE, NOW, Policy(limits=limits), spent=Spent(101, 0.51))
    assert isinstance(over, Fail)
    assert (over.reason, over.stop_session) == (reason, True)


def test_a_budget_reached_to_the_cent_is_kept() -> None:
    limits = Limits(cost=0.5, tokens=100, time=timedelta(hours=1))
    assert exceeded(limits, Spent(100, 0.5), ago(hours=1), NOW) is None
    assert exceeded(limits, Spent(), None, NOW) is None
    assert exceeded(limits, Spent(cost=None), ago(minutes=1), NOW) is None


def test_spending_is_summed_from_what_the_program_tells() -> None:
    told = [Usage(10, 5, 3), Usage(1, 1, cost_usd=0.25), Usage(-4, 0, cost_usd=-1.0), Usage(cost_usd=0.5)]
    assert total(told) == Spent(17, 0.75)
    assert total([Usage(1, 1)]) == Spent(2, None)
    assert total([]) == Spent()
