"""The work on a run as a state machine: every message in every phase, and what holds for every sequence of them."""

from itertools import product

import pytest

from lamplighter.domain.runs.job import (
    DONE,
    Began,
    Broke,
    Claimed,
    Job,
    Message,
    NextRound,
    Over,
    Phase,
    RunEnded,
    Step,
    StepDone,
    StepFailed,
    TakenByPerson,
    TakenOver,
    ToldToStop,
    TryAgain,
    decide,
    listens,
)

STARTING = Job()
FOLLOWING = Job(Phase.FOLLOWING)
VERIFYING = Job(Phase.VERIFYING)
RECORD, STOP, RELEASE, LAST_WORDS, TRY = (
    Step.RECORD_END, Step.STOP, Step.RELEASE, Step.LAST_WORDS, Step.TRY_TO_STOP,
)  # fmt: skip
MESSAGES: list[Message] = [
    Began(), Over(), Over(gone=True), RunEnded(), RunEnded(completed=True), TakenOver(), ToldToStop(), TryAgain(),
    Broke(), StepDone(), StepFailed(), Claimed(), NextRound(), TakenByPerson(),
]  # fmt: skip


def plan(*steps: Step) -> Job:
    return Job(Phase.FINISHING, steps) if steps else DONE


def test_a_job_begins_by_starting_and_follows_what_has_begun() -> None:
    assert STARTING.step is Step.START
    assert decide(STARTING, Began()) == FOLLOWING
    assert FOLLOWING.step is Step.FOLLOW


def test_a_claim_is_verified_and_the_next_round_begins_by_starting() -> None:
    assert decide(FOLLOWING, Claimed()) == VERIFYING
    assert decide(STARTING, Claimed()) == VERIFYING
    assert VERIFYING.step is Step.VERIFY
    assert listens(VERIFYING)
    assert decide(VERIFYING, NextRound()) == STARTING
    assert decide(VERIFYING, Claimed()) is VERIFYING


@pytest.mark.parametrize("job", [STARTING, FOLLOWING, VERIFYING])
@pytest.mark.parametrize(
    ("message", "steps"),
    [
        (Over(), [RECORD, STOP, RELEASE]),
        (Over(gone=True), [RECORD, RELEASE]),
        (RunEnded(), [STOP, RELEASE]),
        (RunEnded(completed=True), [LAST_WORDS, STOP, RELEASE]),
        (ToldToStop(), [STOP, RECORD, RELEASE]),
        (Broke(), [TRY, RECORD, RELEASE]),
        (TakenOver(), []),
        (TakenByPerson(), [STOP, Step.HAND_OVER]),
    ],
)
def test_a_message_at_work_makes_the_plan_of_the_last_steps(job: Job, message: Message, steps: list[Step]) -> None:
    after = decide(job, message)
    assert after == plan(*steps)
    assert after.step == (steps[0] if steps else None)


@pytest.mark.parametrize(
    ("before", "message", "after"),
    [
        (plan(RECORD, STOP, RELEASE), StepDone(), plan(STOP, RELEASE)),
        (plan(RELEASE), StepDone(), DONE),
        (plan(RECORD, STOP, RELEASE), RunEnded(), plan(STOP, RELEASE)),
        (plan(RECORD, STOP, RELEASE), RunEnded(completed=True), plan(LAST_WORDS, STOP, RELEASE)),
        (plan(RECORD, RELEASE), RunEnded(completed=True), plan(RELEASE)),
        (plan(RECORD, STOP, RELEASE), TakenOver(), DONE),
        (plan(RECORD, STOP, RELEASE), ToldToStop(), DONE),
        (plan(LAST_WORDS, STOP, RELEASE), ToldToStop(), plan(STOP, RELEASE)),
        (plan(STOP, RELEASE), ToldToStop(), plan(STOP, RELEASE)),
        (plan(STOP, RECORD, RELEASE), StepFailed(), DONE),
        (plan(STOP, RELEASE), StepFailed(), DONE),
    ],
)
def test_the_last_steps_go_on_are_shortened_or_left(before: Job, message: Message, after: Job) -> None:
    assert decide(before, message) == after


@pytest.mark.parametrize("job", [STARTING, FOLLOWING, plan(RECORD, RELEASE), plan(STOP, RELEASE)])
def test_while_the_store_is_away_the_same_step_is_tried_again(job: Job) -> None:
    assert decide(job, TryAgain()) is job


@pytest.mark.parametrize("message", MESSAGES)
def test_a_job_that_is_done_stays_done(message: Message) -> None:
    assert decide(DONE, message) == DONE
    assert DONE.step is None


def test_only_work_and_the_wait_for_last_words_are_ended_by_a_message() -> None:
    assert [listens(job) for job in (STARTING, FOLLOWING, plan(LAST_WORDS, STOP, RELEASE))] == [True] * 3
    assert [listens(plan(step, RELEASE)) for step in (RECORD, STOP, TRY)] == [False] * 3
    assert not listens(DONE)


def test_whatever_happens_the_run_is_stopped_ended_and_released_once_at_most() -> None:
    for messages in product(MESSAGES, repeat=5):
        job, carried_out = STARTING, []
        for message in messages:
            after = decide(job, message)
            if isinstance(message, StepDone) and job.phase is Phase.FINISHING:
                carried_out.append(job.plan[0])
            job = after
        assert len(carried_out) == len(set(carried_out))
        assert not {STOP, TRY} <= set(carried_out)


def test_a_run_that_ends_while_it_is_handed_over_is_released_and_stopped_once() -> None:
    taken = decide(FOLLOWING, TakenByPerson())
    assert decide(taken, RunEnded()) == plan(STOP, RELEASE)
    assert decide(decide(taken, StepDone()), RunEnded(completed=True)) == plan(RELEASE)
    assert decide(decide(taken, StepDone()), StepDone()) == DONE


@pytest.mark.parametrize("first", [Over(), RunEnded(), RunEnded(completed=True), ToldToStop(), Broke()])
def test_when_each_step_is_carried_out_everything_is_released(first: Message) -> None:
    job, carried_out = decide(FOLLOWING, first), []
    while job.step is not None:
        carried_out.append(job.step)
        job = decide(job, StepDone())
    assert carried_out[-1] is RELEASE
    assert {STOP, TRY} & set(carried_out)
