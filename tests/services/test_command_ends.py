"""How a run ends by how its command ended, its precheck, and the command that verifies it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.runs.model import By, Grade, Mover, Run, RunState, Stage
from lamplighter.domain.runs.verify import Checked
from lamplighter.kit.records import changed
from lamplighter.ports.commands import CommandEnded
from lamplighter.services.runs import command_ends, review
from lamplighter.services.runs.ending import Ending
from lamplighter.testing.clock import START

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ENDED = CommandEnded(0, START, timedelta(seconds=2.5), "lit\n")


@pytest.fixture
def run(city: City) -> Run:
    city.add("sweep", exec="true")
    row = city.start(city.run_now("sweep").run)
    return changed(row, started_at=START, deadline_at=START + MINUTE)


@pytest.mark.parametrize(
    ("ended", "at", "state", "reason", "stage", "told"),
    [
        ({}, 0, RunState.SUCCEEDED, "", None, ""),
        ({"exit_code": 3}, 0, RunState.FAILED, "exit_3", Stage.EXECUTION, "lit"),
        ({"exit_code": 3, "output": " \n"}, 0, RunState.FAILED, "exit_3", Stage.EXECUTION, "exit code 3"),
        ({"exit_code": 3, "output": "a\n b \n\n"}, 0, RunState.FAILED, "exit_3", Stage.EXECUTION, "b"),
        ({"exit_code": None}, 0, RunState.FAILED, "interrupted", Stage.EXECUTION, "nobody saw"),
        ({"exit_code": None, "timed_out": True}, 59, RunState.FAILED, "timeout", Stage.EXECUTION, "after 2.5 s"),
        ({"exit_code": None, "timed_out": True}, 60, RunState.TIMED_OUT, "deadline_exceeded", Stage.FINALIZER, "2.5 s"),
        ({"exit_code": 0}, 90, RunState.SUCCEEDED, "", None, ""),
        ({"exit_code": 3}, 90, RunState.FAILED, "exit_3", Stage.EXECUTION, "lit"),
    ],
)  # fmt: skip
def test_a_command_ends_its_run_by_its_exit_code_its_limit_or_the_run_s_deadline(  # noqa: PLR0917  a table
    run: Run, ended: dict[str, Any], at: int, state: RunState, reason: str, stage: Stage | None, told: str
) -> None:
    found = command_ends.after(run, replace(ENDED, **ended), START + at * SECOND)
    assert (found.state, found.reason, found.stage) == (state, reason, stage)
    assert told in found.error
    assert bool(found.error) is bool(told)
    assert (found.exit_code, found.duration) == (ended.get("exit_code", 0), ENDED.duration)
    assert found.output_tail == ended.get("output", ENDED.output)


def test_a_run_without_a_deadline_is_ended_by_its_command_s_limit_alone(run: Run) -> None:
    free = changed(run, deadline_at=None)
    killed = replace(ENDED, exit_code=None, timed_out=True)
    assert command_ends.after(free, killed, START + 9 * MINUTE).reason == "timeout"
    assert command_ends.until_deadline(free, MINUTE) == MINUTE
    assert command_ends.until_deadline(changed(run, started_at=None), 9 * MINUTE) == 9 * MINUTE
    assert command_ends.until_deadline(run, 9 * MINUTE) == MINUTE
    assert command_ends.until_deadline(run, SECOND) == SECOND
    assert command_ends.until_deadline(changed(run, started_at=START + 2 * MINUTE), SECOND) == timedelta(0)


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (0, None, None), (75, RunState.SKIPPED, "nothing_to_do"), (1, RunState.FAILED, "precheck_failed"),
        (None, RunState.FAILED, "precheck_failed"),
    ],
)  # fmt: skip
def test_a_precheck_lets_its_run_go_on_skips_it_or_fails_it(
    code: int | None, state: RunState | None, reason: str | None
) -> None:
    found = command_ends.after_precheck(replace(ENDED, exit_code=code))
    assert (None if found is None else (found.state, found.reason)) == (None if state is None else (state, reason))
    if state is RunState.FAILED and found is not None:
        assert (found.error, found.exit_code, found.output_tail) == ("lit", code, "lit\n")
        silent = command_ends.after_precheck(replace(ENDED, exit_code=code, output=""))
        assert silent is not None
        assert silent.error == "the precheck failed"


def test_a_command_that_ended_well_is_verified_or_its_run_fails_with_what_both_printed() -> None:
    well = Ending(RunState.SUCCEEDED, exit_code=0, output_tail="lit\n", duration=SECOND)
    assert command_ends.after_verify(well, Checked(0, "fine"), "make test") == replace(well, grade=Grade.VERIFIED)
    found = command_ends.after_verify(well, Checked(2, "the east lamp is dark\n"), "make test")
    assert (found.state, found.reason, found.stage, found.exit_code) == (
        RunState.FAILED, "verify", Stage.VERIFICATION, 2,
    )  # fmt: skip
    assert found.output_tail == "lit\nthe east lamp is dark"
    assert "`make test` ended with exit code 2: the east lamp is dark" in found.error
    assert command_ends.after_verify(well, Checked(0, "", why="it was killed"), "make test").state is RunState.FAILED


def test_what_cannot_be_kept_or_must_not_be_shown_is_replaced() -> None:
    assert command_ends.clean("a\0b https://ada:hunter22@example.org/x") == "a\ufffdb https://ada:•••@example.org/x"


def test_of_what_is_found_on_a_machine_only_the_remains_of_ended_runs_are_over(city: City) -> None:
    names = ("active", "ended", "young", "completed")
    for name in names:
        city.add(name)
    runs = {name: city.run_now(name).run for name in names}
    now = city.clock.now()
    end = "UPDATE runs SET state = 'failed', ended_at = :at, completion_id = :completion WHERE id = :id"
    at = int(now.timestamp()) * 1_000_000
    for name, ended, completion in (("ended", at, None), ("young", at + 1, None), ("completed", at, "c1")):
        params = {"id": runs[name], "at": ended, "completion": completion}
        city.run(lambda tx, params=params: tx.db.execute(end, params))
    found = [*runs.values(), "run_gone"]
    over = lambda **keys: city.read(review.over_among, found, now, **keys)  # noqa: E731
    assert over() == {runs["ended"], runs["completed"], "run_gone"}
    assert over(completed_before=now) == {runs["ended"], runs["completed"], "run_gone"}
    assert over(completed_before=now - SECOND) == {runs["ended"], "run_gone"}


def test_what_a_command_printed_is_kept_once_and_only_of_a_run_that_has_ended(city: City) -> None:
    city.add("sweep", exec="true")
    run = city.start(city.run_now("sweep").run)
    keep = lambda tail: city.run(review.keep_output, run.id, tail)  # noqa: E731
    keep("too early")
    assert city.get(run.id).output_tail == ""
    city.run(review.cancel, run.id, ctx=city.context)
    for tail in ("", "lit", "once more"):
        keep(tail)
    assert city.get(run.id).output_tail == "lit"
    city.run(review.keep_output, "run_gone", "x")


def test_only_what_still_holds_its_run_is_renewed_and_the_rest_is_told(city: City) -> None:
    runs = {}
    for name in ("held", "newer", "taken", "ended"):
        city.add(name)
        runs[name] = city.start(city.run_now(name).run)
    held = {run.id: run.lease.version for run in runs.values()} | {"run_gone": 1}
    held[runs["newer"].id] += 1
    city.run(lambda tx: tx.db.execute("UPDATE runs SET lease_owner = 'x' WHERE id = :id", {"id": runs["taken"].id}))
    over = runs["ended"]
    by = By(Mover.WORKER, "w", over.lease.version)
    city.run(review.end, over.id, Ending(RunState.SUCCEEDED), by, ctx=city.context)
    city.advance(minutes=1)
    lost = {runs["newer"].id, runs["taken"].id, runs["ended"].id, "run_gone"}
    assert city.run(review.renew, held, "own_test", city.clock.now()) == lost
    assert city.read(review.lost_among, held, "own_test") == lost
    before = runs["held"].lease.expires_at
    assert before is not None
    assert city.get(runs["held"].id).lease.expires_at == before + MINUTE
    assert city.get(runs["newer"].id).lease.expires_at == before
