"""The acceptance cases of the patrol, as far as they are its decision."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lamplighter.domain.sessions import meta
from lamplighter.domain.sessions.actions import (
    AgentState,
    ClearDrain,
    Drain,
    NoteEnd,
    Quarantine,
    Restart,
    RestartReason,
    Start,
    StartReason,
    Stop,
    StopReason,
)
from lamplighter.domain.sessions.crashes import CrashLimit, SessionHistory, end_cause, next_start, quarantined_until
from lamplighter.domain.sessions.drift import digest
from lamplighter.domain.sessions.idle import DrainReason
from lamplighter.domain.sessions.model import Seen, SessionName
from lamplighter.domain.sessions.patrol import Plan, plan
from lamplighter.domain.sessions.supervise import Strategy
from lamplighter.testing.sessions import START, a_session, an_agent, at, lived, sight, wanted

A, B, C = SessionName("a"), SessionName("b"), SessionName("c")
POOL = {"coder": timedelta(minutes=5)}


def coder(number: int, **marked: str) -> Seen:
    return a_session(f"coder-{number}", marked={meta.POOL: "coder", **marked})


def drained(seconds: float, reason: DrainReason = DrainReason.SURPLUS, **more: str) -> dict[str, str]:
    return {meta.DRAIN: str(int(at(seconds).timestamp())), meta.DRAIN_REASON: str(reason), **more}


def test_case_24_a_wanted_agent_that_does_not_run_is_started_as_initial_start() -> None:
    made = plan(wanted(an_agent("a")), sight(), {}, START)
    assert made.actions == (Start(A, "a", StartReason.INITIAL),)
    assert made.verdicts[A].state is AgentState.STARTING


def test_case_24_an_instance_of_a_pool_is_started_as_scale_up() -> None:
    made = plan(wanted(an_agent("coder-1", template="coder", is_pool=True)), sight(), {}, START)
    assert made.actions == (Start(SessionName("coder-1"), "coder-1", StartReason.SCALE_UP),)


def test_case_25_a_healthy_session_is_left_alone() -> None:
    made = plan(wanted(an_agent("a")), sight(a_session("a")), {A: lived((0, None))}, at(9))
    assert (made.actions, made.verdicts[A].state) == ((), AgentState.RUNNING)


def test_case_25_a_session_without_a_stored_hash_is_left_alone() -> None:
    bare = replace(a_session("a"), meta={})
    assert plan(wanted(an_agent("a")), sight(bare), {}, at(9)).actions == ()


def test_case_26_a_drifted_session_is_drained_first_and_told_which_fields_changed() -> None:
    agent = an_agent("a", fingerprint={"command": "c1", "env": "e"})
    made = plan(wanted(agent), sight(a_session("a")), {}, at(9))
    assert made.actions == (Drain(A, "a", DrainReason.DRIFT, "command, env"),)


@pytest.mark.parametrize("acknowledged", [True, False])
def test_case_26_a_drifted_session_restarts_once_it_acknowledged_or_its_time_is_over(*, acknowledged: bool) -> None:
    agent = an_agent("a", fingerprint={"command": "c1"})
    marked = drained(0, DrainReason.DRIFT, **({meta.DRAIN_ACK: "1"} if acknowledged else {}))
    made = plan(wanted(agent), sight(a_session("a", marked=marked)), {}, at(1 if acknowledged else 61))
    assert [type(action) for action in made.actions] == [Restart]
    assert made.actions[0].reason is RestartReason.DRIFT


def test_case_26_how_long_drift_waits_is_a_setting_of_its_own() -> None:
    agent = an_agent("a", fingerprint={"command": "c1"}, drain_timeout=timedelta(minutes=5))
    seen = sight(a_session("a", marked=drained(0, DrainReason.DRIFT)))
    assert plan(wanted(agent, drift_timeout=timedelta(seconds=9)), seen, {}, at(10)).actions != ()
    patient = plan(wanted(agent, drift_timeout=timedelta(seconds=90)), seen, {}, at(10))
    assert (patient.actions, patient.wake_at) == ((), at(90))
    assert plan(wanted(agent, drift_timeout=timedelta(0)), seen, {}, at(9999)).actions == ()
    asked = sight(a_session("a", marked=drained(0, DrainReason.PERSON)))
    assert plan(wanted(an_agent("a"), drift_timeout=timedelta(seconds=9)), asked, {}, at(10)).actions == ()


def test_case_26_a_drift_that_was_taken_back_clears_its_drain() -> None:
    marked = drained(0, DrainReason.DRIFT)
    assert plan(wanted(an_agent("a")), sight(a_session("a", marked=marked)), {}, at(9)).actions == (ClearDrain(A, "a"),)


def test_case_26_a_drifted_session_at_work_is_not_restarted_by_the_clock() -> None:
    agent = an_agent("a", fingerprint={"command": "c1"})
    marked = drained(0, DrainReason.DRIFT)
    assert plan(wanted(agent), sight(a_session("a", marked=marked), busy=("a",)), {}, at(9999)).actions == ()


def test_in_one_pass_a_drifted_session_is_restarted_at_once_unless_it_works_or_somebody_is_attached() -> None:
    once = wanted(an_agent("a", fingerprint={"command": "c1"}), one_pass=True)
    made = plan(once, sight(a_session("a", marked=drained(0, DrainReason.DRIFT))), {}, at(9))
    assert made.actions == (Restart(A, "a", RestartReason.DRIFT, "command"),)
    for seen in (sight(a_session("a"), busy=("a",)), sight(a_session("a", attached=True))):
        left = plan(once, seen, {}, at(9))
        assert left.actions == ()
        assert left.verdicts[A].reason.startswith("configuration changed (command), but ")


def test_in_one_pass_nobody_is_restarted_for_silence_or_by_its_own_wish() -> None:
    once = wanted(an_agent("a", idle_timeout=timedelta(seconds=1)), one_pass=True)
    session = a_session("a", marked={meta.RESTART_REQUESTED: "1"}, started_at=at(-9999), last_activity=at(-999))
    made = plan(once, sight(session), {}, at(9999))
    assert made.actions == ()
    assert "asks for a restart" in made.verdicts[A].reason


def test_in_one_pass_a_surplus_instance_is_stopped_at_once_unless_it_is_at_work() -> None:
    once = wanted(pools=POOL, one_pass=True)
    name = SessionName("coder-1")
    assert plan(once, sight(coder(1)), {}, START).actions == (Stop(name, "coder-1", StopReason.SURPLUS),)
    busy = plan(once, sight(coder(1), busy=("coder-1",)), {}, START)
    assert (busy.actions, busy.verdicts[name].reason) == ((), "surplus, but at work")


def test_case_27_a_failed_start_is_tried_again_later_and_later_and_counts() -> None:
    history = SessionHistory().failed(at(0))
    assert plan(wanted(an_agent("a")), sight(), {A: history}, at(0)).actions != ()
    history = history.failed(at(0))
    made = plan(wanted(an_agent("a")), sight(), {A: history}, at(0.5))
    assert (made.actions, made.wake_at, made.verdicts[A].state) == ((), at(1), AgentState.CRASHED)
    limit = CrashLimit(count=2)
    assert isinstance(plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(2)).actions[0], Quarantine)


def test_case_28_a_zombie_is_told_once_and_restarted_as_crash_recovery() -> None:
    zombie = a_session("a", alive=False, exit_status=3)
    made = plan(wanted(an_agent("a")), sight(zombie), {A: lived((0, None))}, at(100))
    assert made.actions == (
        NoteEnd(A, "a", "ses_a", 3, has_output=True),
        Start(A, "a", StartReason.CRASH_RECOVERY),
    )
    noted = replace(lived((0, 100), (100, 100), (100, 100)), crash_noted="ses_a")
    assert plan(wanted(an_agent("a")), sight(zombie), {A: noted}, at(100)).actions == ()


def test_case_28_a_session_that_vanished_is_noted_without_output() -> None:
    made = plan(wanted(an_agent("a")), sight(), {A: lived((0, None))}, at(100))
    assert made.actions == (NoteEnd(A, "a", "", None, has_output=False), Start(A, "a", StartReason.CRASH_RECOVERY))


@pytest.mark.parametrize("reason", [DrainReason.PERSON, DrainReason.DRIFT])
def test_an_agent_that_ends_while_it_drains_has_not_crashed_and_starts_again_at_once(reason: DrainReason) -> None:
    zombie = a_session("a", alive=False, exit_status=1, marked=drained(90, reason))
    history = lived((0, 1), (1, 2), (2, None))
    made = plan(wanted(an_agent("a"), limit=CrashLimit(count=9)), sight(zombie), {A: history}, at(20))
    assert made.actions == (
        NoteEnd(A, "a", "ses_a", 1, has_output=True, drained=True),
        Start(A, "a", StartReason.DRAINED),
    )


def test_a_session_that_drained_and_is_gone_with_its_marks_has_not_crashed() -> None:
    seen = replace(sight(), draining=frozenset({A}))
    made = plan(wanted(an_agent("a")), seen, {A: lived((0, None))}, at(100))
    assert made.actions == (
        NoteEnd(A, "a", "", None, has_output=False, drained=True),
        Start(A, "a", StartReason.DRAINED),
    )


def test_an_end_while_draining_takes_nobody_along() -> None:
    agents = (
        an_agent("a", strategy=Strategy.REST_FOR_ONE),
        an_agent("b", depends_on=("a",), strategy=Strategy.REST_FOR_ONE),
    )
    zombie = a_session("a", alive=False, marked=drained(0, DrainReason.PERSON))
    made = plan(wanted(*agents), sight(zombie, a_session("b")), {A: lived((0, None))}, at(9))
    assert [action.session for action in made.actions] == [A, A]


def test_a_surplus_instance_that_ended_while_it_drained_is_cleared_away_as_drained() -> None:
    gone = replace(coder(1, **drained(0)), alive=False)
    name = SessionName("coder-1")
    assert plan(wanted(pools=POOL), sight(gone), {}, at(9)).actions == (Stop(name, "coder-1", StopReason.DRAINED),)
    crashed = replace(coder(1), alive=False)
    assert plan(wanted(pools=POOL), sight(crashed), {}, at(9)).actions == (Stop(name, "coder-1", StopReason.SURPLUS),)


def test_an_agent_whose_session_was_renamed_starts_after_its_former_session_is_gone() -> None:
    agent = replace(an_agent("a"), session=SessionName("new-a"))
    made = plan(wanted(agent), sight(a_session("a")), {}, at(9))
    assert made.actions == (Stop(A, "a", StopReason.RENAMED),)
    assert made.verdicts[SessionName("new-a")].reason == "waits for the end of its session a"
    assert plan(wanted(agent), sight(), {}, at(9)).actions == (Start(SessionName("new-a"), "a", StartReason.INITIAL),)


def test_a_renamed_instance_of_a_pool_is_stopped_not_drained_for_it_starts_again() -> None:
    agent = replace(an_agent("coder-1", template="coder", is_pool=True), session=SessionName("new-coder-1"))
    made = plan(wanted(agent, pools=POOL), sight(coder(1)), {}, at(9))
    assert made.actions == (Stop(SessionName("coder-1"), "coder-1", StopReason.RENAMED),)


def test_case_29_a_session_that_nobody_wants_is_stopped_as_an_orphan() -> None:
    made = plan(wanted(), sight(a_session("a")), {}, at(9))
    assert made.actions == (Stop(A, "a", StopReason.ORPHAN),)


def test_the_session_of_a_run_is_not_an_orphan() -> None:
    assert plan(wanted(), sight(a_session("a", marked={meta.RUN: "run_1"})), {}, at(9)).actions == ()


def test_case_30_a_surplus_instance_is_marked_once_and_not_stopped() -> None:
    made = plan(wanted(pools=POOL), sight(coder(3)), {}, at(9))
    assert made.actions == (Drain(SessionName("coder-3"), "coder-3", DrainReason.SURPLUS),)
    again = plan(wanted(pools=POOL), sight(coder(3, **drained(9))), {}, at(20))
    assert (again.actions, again.wake_at) == ((), at(309))


def test_case_30_a_surplus_instance_at_work_is_never_drained() -> None:
    assert plan(wanted(pools=POOL), sight(coder(3), busy=("coder-3",)), {}, at(9)).actions == ()
    late = coder(3, **drained(0))
    assert plan(wanted(pools=POOL), sight(late, busy=("coder-3",)), {}, at(9999)).actions == ()


def test_case_31_a_draining_instance_is_stopped_when_it_acknowledged() -> None:
    made = plan(wanted(pools=POOL), sight(coder(3, **drained(0, **{meta.DRAIN_ACK: "1"}))), {}, at(9))
    assert made.actions == (Stop(SessionName("coder-3"), "coder-3", StopReason.DRAINED),)


def test_case_31_a_draining_instance_is_stopped_when_its_time_is_over() -> None:
    made = plan(wanted(pools=POOL), sight(coder(3, **drained(0))), {}, at(301))
    assert made.actions == (Stop(SessionName("coder-3"), "coder-3", StopReason.DRAIN_TIMEOUT),)


@pytest.mark.parametrize(("timeout", "now"), [(timedelta(minutes=5), 299), (timedelta(0), 99999)])
def test_case_31_within_its_time_or_without_one_it_is_left(timeout: timedelta, now: float) -> None:
    assert plan(wanted(pools={"coder": timeout}), sight(coder(3, **drained(0))), {}, at(now)).actions == ()


def test_case_32_a_draining_instance_that_is_wanted_again_is_undrained() -> None:
    agent = an_agent("coder-3", template="coder", is_pool=True)
    made = plan(wanted(agent, pools=POOL), sight(coder(3, **drained(0))), {}, at(9))
    assert made.actions == (ClearDrain(SessionName("coder-3"), "coder-3"),)


def test_a_persons_drain_of_a_wanted_agent_stands_and_its_acknowledgement_is_honoured() -> None:
    marked = drained(0, DrainReason.PERSON)
    assert plan(wanted(an_agent("a")), sight(a_session("a", marked=marked)), {}, at(9)).actions == ()
    marked[meta.DRAIN_ACK] = "1"
    made = plan(wanted(an_agent("a")), sight(a_session("a", marked=marked)), {}, at(9))
    assert made.actions == (Restart(A, "a", RestartReason.DRAINED),)


def test_case_33_three_starts_in_the_window_quarantine_with_one_event() -> None:
    limit = CrashLimit(count=3)
    history = lived((0, 10), (10, 20), (21, 30))
    made = plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(100))
    until = at(0) + limit.window
    assert made.actions == (Quarantine(A, "a", 3, until),)
    assert (made.wake_at, made.verdicts[A].state) == (until, AgentState.QUARANTINED)
    noted = replace(history, quarantine_noted=until)
    assert plan(wanted(an_agent("a"), limit=limit), sight(), {A: noted}, at(101)).actions == ()
    lifted = plan(wanted(an_agent("a"), limit=limit), sight(), {A: noted}, until)
    assert lifted.actions == (Start(A, "a", StartReason.CRASH_RECOVERY),)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (None, "its program ended"),
        (1, "its program ended with status 1"),
        (126, "its program ended with status 126 (cannot be run)"),
        (127, "its program ended with status 127 (program not found)"),
        (128, "its program ended with status 128"),
        (137, "its program was ended by SIGKILL"),
        (143, "its program was ended by SIGTERM"),
        (255, "its program ended with status 255"),
    ],
)
def test_an_end_is_told_with_its_status_and_what_shells_mean_by_it(status: int | None, told: str) -> None:
    assert end_cause(status, " \n") == told


def test_what_a_program_wrote_before_a_signal_ended_it_is_not_told_as_the_cause() -> None:
    assert end_cause(137, "step 6\nstep 7\n") == "its program was ended by SIGKILL; the last it wrote: step 7"


def test_quarantine_says_why_the_last_life_was_over() -> None:
    limit = CrashLimit(count=2, window=timedelta(minutes=10))
    history = SessionHistory().failed(at(0), cause="no disk").started(at(1))
    history = history.ended(at(2), cause=end_cause(127, "a\n/bin/sh: 1: nope: not found\n\n"))
    history = history.started(at(3), counted=False).ended(at(4), wished=True, cause="suspended")
    made = plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(5))
    assert made.verdicts[A].reason == (
        "started 2 times within 10m: its program ended with status 127 (program not found): /bin/sh: 1: nope: not found"
    )


def test_case_33_a_person_may_lift_the_quarantine() -> None:
    limit = CrashLimit(count=3)
    history = lived((0, 10), (10, 20), (21, 30)).cleared()
    made = plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(31))
    assert isinstance(made.actions[0], Start)


def test_case_33_a_session_that_runs_at_the_limit_is_left_running() -> None:
    limit = CrashLimit(count=3)
    history = lived((0, 10), (10, 20), (21, None))
    assert plan(wanted(an_agent("a"), limit=limit), sight(a_session("a")), {A: history}, at(30)).actions == ()


def test_lives_that_lie_ahead_of_a_clock_set_back_delay_no_start_and_count_for_no_quarantine() -> None:
    history = SessionHistory()
    for second in range(0, 50, 10):
        history = history.started(at(second)).ended(at(second + 1))
    limit = CrashLimit(3, timedelta(minutes=10))
    assert quarantined_until(history, limit, at(60)) is not None
    before = at(60) - timedelta(days=1)
    assert quarantined_until(history, limit, before) is None
    assert next_start(history, before) == before
    crashed = history.started(before).ended(before + timedelta(seconds=1))
    assert next_start(crashed, before + timedelta(seconds=2)) <= before + timedelta(seconds=2)


def test_case_34_a_limit_of_zero_never_quarantines() -> None:
    history = lived(*((number * 100, number * 100 + 90) for number in range(30)))
    made = plan(wanted(an_agent("a"), limit=CrashLimit(count=0)), sight(), {A: history}, at(3000))
    assert isinstance(made.actions[0], Start)


def test_case_35_an_idle_session_is_restarted() -> None:
    agent = an_agent("a", idle_timeout=timedelta(minutes=15))
    session = a_session("a", started_at=at(-9999), last_activity=at(-1200))
    assert plan(wanted(agent), sight(session), {}, START).actions == (Restart(A, "a", RestartReason.IDLE),)


def test_case_35_unknown_activity_is_not_idleness() -> None:
    agent = an_agent("a", idle_timeout=timedelta(minutes=15))
    session = a_session("a", started_at=at(-9999), last_activity=None)
    assert plan(wanted(agent), sight(session), {}, START).actions == ()


def test_case_35_a_fresh_session_has_its_grace() -> None:
    agent = an_agent("a", idle_timeout=timedelta(seconds=10))
    session = a_session("a", started_at=START, last_activity=at(-9999))
    made = plan(wanted(agent), sight(session), {}, at(65))
    assert (made.actions, made.wake_at) == ((), at(70))
    assert plan(wanted(agent), sight(session), {}, at(70)).actions == (), "its last instant"
    assert plan(wanted(agent), sight(session), {}, at(70.1)).actions != ()


def test_case_36_a_restart_request_is_carried_out() -> None:
    session = a_session("a", marked={meta.RESTART_REQUESTED: "1"})
    assert plan(wanted(an_agent("a")), sight(session), {}, at(9)).actions == (Restart(A, "a", RestartReason.REQUESTED),)


def test_case_36_a_restart_request_comes_before_idleness_and_drift() -> None:
    agent = an_agent("a", idle_timeout=timedelta(seconds=1), fingerprint={"command": "other"})
    session = a_session("a", marked={meta.RESTART_REQUESTED: "1"}, started_at=at(-9999), last_activity=at(-999))
    made = plan(wanted(agent), sight(session), {}, START)
    assert made.actions == (Restart(A, "a", RestartReason.REQUESTED),)


def test_case_37_all_missing_agents_start_in_one_plan_in_their_order() -> None:
    made = plan(wanted(an_agent("c"), an_agent("a"), an_agent("b")), sight(), {}, START)
    assert [action.session for action in made.actions] == [C, A, B]


def test_case_38_suspended_agents_are_stopped_and_not_started() -> None:
    made = plan(wanted(an_agent("b"), suspended=frozenset({"a"})), sight(a_session("a")), {}, START)
    assert made.actions == (Start(B, "b", StartReason.INITIAL), Stop(A, "a", StopReason.SUSPENDED))
    assert made.verdicts[A].state is AgentState.SUSPENDED


def test_case_38_a_suspended_city_stops_everything_its_pools_included() -> None:
    made = plan(wanted(an_agent("a"), pools=POOL, city_suspended=True), sight(a_session("a"), coder(1)), {}, START)
    assert {(action.session, action.reason) for action in made.actions} == {
        (A, StopReason.SUSPENDED), (SessionName("coder-1"), StopReason.SUSPENDED),
    }  # fmt: skip


def test_case_38_instances_of_a_suspended_pool_are_stopped_not_drained() -> None:
    made = plan(wanted(pools=POOL, suspended=frozenset({"coder"})), sight(coder(1)), {}, START)
    assert made.actions == (Stop(SessionName("coder-1"), "coder-1", StopReason.SUSPENDED),)


def test_an_attached_session_is_spared_by_every_rule() -> None:
    drifted = an_agent("a", fingerprint={"command": "other"}, idle_timeout=timedelta(seconds=1))
    session = a_session("a", attached=True, marked={meta.RESTART_REQUESTED: "1"}, started_at=at(-9999))
    assert plan(wanted(drifted), sight(session), {}, at(9999)).actions == ()
    assert plan(wanted(), sight(session), {}, at(9999)).actions == ()
    assert plan(wanted(city_suspended=True), sight(session), {}, at(9999)).actions == ()
    surplus = replace(coder(3, **drained(0)), attached=True)
    assert plan(wanted(pools=POOL), sight(surplus), {}, at(9999)).actions == ()


def test_a_session_with_an_action_under_way_is_left_alone() -> None:
    assert plan(wanted(an_agent("a")), sight(under_way=("a",)), {}, START).actions == ()
    assert plan(wanted(), sight(a_session("a"), under_way=("a",)), {}, START).actions == ()


@pytest.mark.parametrize(("short_lives", "delay"), [(1, 0), (2, 1), (3, 5), (4, 15), (5, 30), (6, 30)])
def test_relights_come_later_and_later_while_lives_stay_short(short_lives: int, delay: float) -> None:
    history = lived(*((number, number + 1) for number in range(short_lives)))
    end = short_lives
    limit = CrashLimit(count=0)
    due = plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(end + delay))
    assert isinstance(due.actions[0], Start)
    if delay:
        early = plan(wanted(an_agent("a"), limit=limit), sight(), {A: history}, at(end + delay - 0.001))
        assert (early.actions, early.wake_at) == ((), at(end + delay))


def test_a_long_life_makes_the_next_relight_come_at_once() -> None:
    history = lived((0, 1), (1, 2), (2, 3), (10, 70))
    made = plan(wanted(an_agent("a")), sight(), {A: history}, at(70))
    assert isinstance(made.actions[0], Start)


def test_an_agent_waits_for_what_it_depends_on() -> None:
    both = wanted(an_agent("b", depends_on=("a",)), an_agent("a"))
    first = plan(both, sight(), {}, START)
    assert first.actions == (Start(A, "a", StartReason.INITIAL),)
    assert first.verdicts[B].reason == "waits for a"
    assert plan(both, sight(a_session("a"), under_way=("a",)), {}, START).actions == ()
    then = plan(both, sight(a_session("a")), {}, START)
    assert then.actions == (Start(B, "b", StartReason.INITIAL),)


def test_a_dependency_that_is_not_wanted_is_not_waited_for() -> None:
    made = plan(wanted(an_agent("b", depends_on=("a",))), sight(), {}, START)
    assert made.actions == (Start(B, "b", StartReason.INITIAL),)


def test_agents_that_wait_for_each_other_start_all_the_same() -> None:
    ring = wanted(an_agent("a", depends_on=("b",)), an_agent("b", depends_on=("a",)))
    started = {action.session for action in plan(ring, sight(), {}, START).actions}
    more = {action.session for action in plan(ring, sight(*(a_session(name) for name in started)), {}, START).actions}
    assert started | more == {A, B}


def _family(strategy: str) -> Plan:
    """c needs b needs a; b died."""
    agents = (
        an_agent("a", strategy=strategy),
        an_agent("b", depends_on=("a",), strategy=strategy),
        an_agent("c", depends_on=("b",), strategy=strategy),
        an_agent("other", strategy=strategy),
    )
    alive = [a_session("a"), a_session("b", alive=False), a_session("c"), a_session("other")]
    return plan(wanted(*agents), sight(*alive), {B: lived((0, None))}, at(100))


def test_one_for_one_restarts_the_dead_agent_alone() -> None:
    assert {action.session for action in _family("one_for_one").actions} == {B}


def test_rest_for_one_takes_along_those_that_depend_on_the_dead() -> None:
    actions = _family("rest_for_one").actions
    assert Stop(C, "c", StopReason.DEPENDENCY) in actions
    assert Start(B, "b", StartReason.CRASH_RECOVERY) in actions
    assert {action.session for action in actions} == {B, C}


def test_one_for_all_takes_along_all_that_are_tied_together_and_starts_in_order() -> None:
    actions = _family("one_for_all").actions
    assert {action.session for action in actions if isinstance(action, Stop)} == {A, C}
    assert not [action for action in actions if isinstance(action, Start)]


def test_a_death_takes_others_along_only_once() -> None:
    agents = (an_agent("a", strategy="rest_for_one"), an_agent("b", depends_on=("a",)))
    sessions = sight(a_session("a", alive=False), a_session("b"))
    noted = {A: replace(lived((0, 1), (1, 2)), crash_noted="ses_a")}
    assert plan(wanted(*agents), sessions, noted, at(2)).actions == ()


def test_the_digest_in_the_metadata_is_that_of_the_fields() -> None:
    assert a_session("a").meta[meta.FINGERPRINT] == digest({"command": "c0"})
