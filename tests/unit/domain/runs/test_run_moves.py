from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.runs.lease import Lease, LeaseLost, claim
from lamplighter.domain.runs.model import (
    ACTIVE,
    ATTENTION,
    MOVES,
    TERMINAL,
    By,
    IllegalMove,
    Mover,
    NotEnded,
    Run,
    RunState,
    Stage,
    first_state,
    may_move,
    move,
    retry_of,
    said,
)

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)
ADMIN = By(Mover.PERSON, "ada")


def test_a_run_goes_its_way_and_each_step_is_recorded() -> None:
    run = a_run(RunState.QUEUED, lease=claim(Lease(), "w1", NOW))
    moved = move(run, RunState.ENRICHING, worker(1), NOW)
    assert (moved.from_state, moved.to_state, moved.actor, moved.type) == (
        RunState.QUEUED, RunState.ENRICHING, "w1", "status_transition",
    )  # fmt: skip
    ready = move(moved.run, RunState.READY, worker(1), NOW).run
    assert ready.lease == Lease(1)
    again = move(a_run(RunState.READY, lease=claim(ready.lease, "w2", NOW)), RunState.RUNNING, worker(2), later(1)).run
    assert again.started_at == later(1)
    done = move(again, RunState.SUCCEEDED, By(Mover.COMPLETION, "session"), later(2), reason="succeeded")
    assert (done.type, done.run.ended_at, done.run.lease, done.run.reason) == (
        "completion", later(2), Lease(2), "succeeded",
    )  # fmt: skip
    assert done.run.ended


def test_a_worker_with_an_old_lease_moves_nothing() -> None:
    run = a_run(RunState.READY, lease=claim(claim(Lease(), "w1", NOW), "w2", later(10)))
    with pytest.raises(LeaseLost):
        move(run, RunState.RUNNING, worker(1), later(10))
    with pytest.raises(LeaseLost):
        move(run, RunState.RUNNING, By(Mover.WORKER, "w2"), later(10))


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_the_deadline_binds_every_state_that_has_not_ended(state: RunState) -> None:
    ended = move(
        a_run(state), RunState.TIMED_OUT, By(Mover.FINALIZER, "finalizer"), NOW,
        reason="deadline_exceeded", stage=Stage.FINALIZER,
    ).run  # fmt: skip
    assert (ended.reason, ended.stage, ended.ended_at) == ("deadline_exceeded", Stage.FINALIZER, NOW)


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_a_person_may_cancel_whatever_has_not_ended(state: RunState) -> None:
    assert move(a_run(state), RunState.CANCELED, ADMIN, NOW, reason="canceled").run.state is RunState.CANCELED


@pytest.mark.parametrize("state", sorted(ATTENTION))
@pytest.mark.parametrize("outcome", [RunState.SUCCEEDED, RunState.FAILED])
def test_a_person_resolves_what_waits_and_the_end_keeps_its_time(state: RunState, outcome: RunState) -> None:
    run = a_run(state, ended_at=NOW, reason="no_completion", stage=Stage.FINALIZER)
    resolved = move(run, outcome, ADMIN, later(9), reason="looked at it")
    assert (resolved.type, resolved.actor) == ("manual_resolution", "ada")
    assert (resolved.run.ended_at, resolved.run.reason) == (NOW, "manual_resolution:looked at it")
    assert resolved.run.stage is Stage.FINALIZER
    assert move(run, outcome, ADMIN, later(9)).run.reason == "manual_resolution:resolved"


@pytest.mark.parametrize("state", [RunState.TIMED_OUT, RunState.FAILED])
def test_a_late_completion_is_refused_with_a_clear_answer(state: RunState) -> None:
    with pytest.raises(
        IllegalMove, match=f"Run run_1 {said(state)} and cannot become succeeded by completion"
    ) as refused:
        move(a_run(state), RunState.SUCCEEDED, By(Mover.COMPLETION, "session"), NOW)
    assert "`lamp run retry`" in refused.value.hint


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED])
def test_some_ends_are_for_good(state: RunState) -> None:
    for to in RunState:
        for mover in Mover:
            assert not may_move(state, to, mover)
    with pytest.raises(IllegalMove) as refused:
        move(a_run(state), RunState.FAILED, ADMIN, NOW)
    assert "lamp run retry" in refused.value.hint


def test_nothing_is_completed_before_it_runs() -> None:
    with pytest.raises(IllegalMove) as refused:
        move(a_run(RunState.READY), RunState.SUCCEEDED, By(Mover.COMPLETION, "session"), NOW)
    assert refused.value.hint == "Only a running run can be completed."
    with pytest.raises(IllegalMove) as refused:
        move(a_run(RunState.READY), RunState.QUEUED, ADMIN, NOW)
    assert refused.value.hint == ""


def test_no_move_leads_back_into_the_work() -> None:
    assert not [pair for pair in MOVES if pair[0] in TERMINAL and pair[1] in ACTIVE]


def test_a_retry_is_a_new_run_linked_to_the_old_one() -> None:
    old = a_run(RunState.FAILED, deadline_at=later(30), attempt=1, causes=("a",))
    new = retry_of(old, "run_2", later(60), enriched=False)
    assert (new.state, new.retries, new.attempt, new.deadline_at) == (RunState.READY, "run_1", 2, later(90))
    assert (new.lease, new.ended_at, new.reason, new.causes) == (Lease(), None, "", ("a",))
    assert retry_of(a_run(RunState.FAILED), "run_2", NOW, enriched=True).deadline_at is None
    with pytest.raises(NotEnded, match="still running"):
        retry_of(a_run(RunState.RUNNING), "run_2", NOW, enriched=False)


def test_what_has_nothing_to_enrich_starts_ready() -> None:
    assert first_state(enriched=True) is RunState.QUEUED
    assert first_state(enriched=False) is RunState.READY


def a_run(state: RunState, **fields: object) -> Run:
    return Run("run_1", "job", state, NOW, **fields)  # type: ignore[arg-type]  a builder takes any field


def worker(version: int) -> By:
    return By(Mover.WORKER, "w1", version)


def later(minutes: int) -> datetime:
    return NOW + timedelta(minutes=minutes)
