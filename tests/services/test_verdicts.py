"""The verdict on a claim of success, and the end of runs whose wisp is kept by another program: each recorded once."""

from typing import Any

import pytest
from automation_city import City
from test_pipeline_cases import AGENT, a_completion, complete, items, running, timeline

from lamplighter.domain.beads.model import NewBead
from lamplighter.domain.runs.completion import parse
from lamplighter.domain.runs.lease import LeaseLost
from lamplighter.domain.runs.model import Grade, Run, RunState, Stage
from lamplighter.domain.runs.prompt import completion_id
from lamplighter.domain.runs.verify import Checked
from lamplighter.kit.records import changed
from lamplighter.ports.runs import RunUnknown
from lamplighter.services import outbox
from lamplighter.services.beads import changes as beads
from lamplighter.services.runs import circling, cooking, review, verifying

RED, GREEN = Checked(3, "the east lamp is dark\n"), Checked(0, "all lit\n")


@pytest.fixture
def run(city: City) -> str:
    city.add("sweep", agent=AGENT, verify="make test", rounds=1)
    run = city.run_now("sweep").run
    running(city, run)
    return run


def claim(city: City, run: str, number: int = 1) -> Run:
    said = a_completion(run)
    if number > 1:
        said = parse(
            {
                "run_id": run,
                "completion_id": completion_id(run, number),
                "outcome": "succeeded",
                "summary_markdown": "Lit.",
            }
        )
        city.run(lambda tx: tx.runs.swap(tx.runs.lock(run), changed(tx.runs.lock(run), session_id="ses_1")))
    told = complete(city, said)
    assert told.verifying
    return city.get(run)


def settle(city: City, held: Run, checked: Checked) -> Run:
    found: Run = city.run(verifying.settle, held, checked, actor="worker", ctx=city.context)
    return found


def test_a_claim_that_holds_ends_its_run_as_verified(city: City, run: str) -> None:
    held = claim(city, run)
    after = settle(city, held, GREEN)
    assert (after.state, after.grade, after.pending, after.summary) == (
        RunState.SUCCEEDED,
        Grade.VERIFIED,
        None,
        "Lit.",
    )
    assert after.completion_id == completion_id(run)
    assert timeline(city, run).count("verify_passed") == 1
    (judged,) = city.read(lambda tx: tx.rounds.of(run))
    assert (judged.passed, judged.exit_code, judged.output_tail) == (True, 0, "all lit\n")
    assert settle(city, held, RED) == after, "it has ended"
    assert len(city.read(lambda tx: tx.rounds.of(run))) == 1


def test_a_claim_that_does_not_hold_sends_the_run_into_its_next_round_and_the_last_one_fails_it(
    city: City, run: str
) -> None:
    again = settle(city, claim(city, run), RED)
    assert (again.state, again.round, again.pending, again.session_id, again.prompt_sent_at) == (
        RunState.RUNNING, 2, None, None, None,
    )  # fmt: skip
    (told,) = city.events("run.verify_failed")
    assert told.payload == {"run": run, "round": 1, "exit_code": 3, "rounds": 1}
    failed = next(event for event in city.shown(run)["events"] if event["type"] == "verify_failed")
    assert (failed["data"]["why"], failed["data"]["output_tail"]) == ("it ended with exit code 3", RED.output)
    assert settle(city, again, GREEN) == again, "no claim waits"
    after = settle(city, claim(city, run, 2), Checked(None, "", why="it was killed"))
    assert (after.state, after.reason, after.stage, after.exit_code, after.grade) == (
        RunState.FAILED, "verify", Stage.VERIFICATION, None, None,
    )  # fmt: skip
    assert "after 2 rounds that could not be verified" in after.error
    assert [one.passed for one in city.read(lambda tx: tx.rounds.of(run))] == [False, False]


def test_rounds_in_which_an_agent_went_in_circles_are_none_of_those_that_a_verification_allows(
    city: City, run: str
) -> None:
    held = city.get(run)
    assert city.run(circling.found, held, "it reads the same file", ctx=city.context)
    assert city.run(circling.tell, held, ctx=city.context).round == 2
    after = settle(city, claim(city, run, 2), RED)
    assert (after.state, after.round) == (RunState.RUNNING, 3)


@pytest.mark.parametrize("verified", [True, False])
def test_a_verdict_of_whoever_lost_the_run_or_after_its_end_changes_nothing(
    city: City, run: str, *, verified: bool
) -> None:
    held, checked = claim(city, run), GREEN if verified else RED
    stale = changed(held, lease=changed(held.lease, version=held.lease.version - 1))
    with pytest.raises(LeaseLost):
        settle(city, stale, checked)
    with pytest.raises(RunUnknown):
        settle(city, changed(held, id="run_gone"), checked)
    city.run(review.cancel, run, ctx=city.context)
    assert settle(city, held, checked).state is RunState.CANCELED
    assert [one.passed for one in city.read(lambda tx: tx.rounds.of(run))] == [None]


def test_an_agent_is_told_once_that_it_goes_in_circles(city: City, run: str) -> None:
    held = city.get(run)
    found = lambda: city.run(circling.found, held, "it reads the same file", ctx=city.context)  # noqa: E731
    assert not city.read(circling.is_to_be_told, held)
    assert city.run(circling.tell, held, ctx=city.context) == held, "there is nothing to tell"
    assert (found(), found(), timeline(city, run).count("stuck_found")) == (True, True, 1)
    assert city.read(circling.is_to_be_told, held)
    after = city.run(circling.tell, held, ctx=city.context)
    assert (after.round, after.session_id) == (2, None)
    assert city.run(circling.tell, held, ctx=city.context).round == 2
    assert not found(), "it was told before"
    assert (city.read(circling.rounds, run), len(city.events("run.stuck"))) == (1, 1)
    assert city.read(circling.told_in, run, 1) == "it reads the same file"
    assert city.read(circling.told_in, run, 2) == ""


# ── wisps that another program keeps ──────────────────────────────────────────────────────────────────────────────────


def cook(city: City, name: str) -> tuple[str, Any]:
    """A formula run that has begun, and the claimed item that cooks it."""
    city.add(name, formula="feature")
    run = city.run_now(name).run
    (item,) = city.run(outbox.claim_due, "own_test", city.clock.now(), limit=1, run=run)
    assert city.run(cooking.cook_elsewhere, item, review.Worker("own_test", "here"), ctx=city.context) is not None
    assert items(city, run) == [("cook", "pending"), ("enqueue_execute", "done")]
    (item,) = city.run(outbox.claim_due, "own_test", city.clock.now(), limit=1, run=run)
    return run, item


def cooked(city: City, item: Any, wisp: str) -> None:
    bead = city.read(lambda tx: tx.beads.get(wisp))
    city.run(cooking.cooked_elsewhere, item, bead, city.context)


def test_a_run_names_the_wisp_that_was_cooked_for_it_once_and_waits_without_a_holder(city: City) -> None:
    wisp, other = (city.run(beads.create, NewBead(one), prefix="te", ctx=city.context).id for one in ("a", "b"))
    run, item = cook(city, "one")
    cooked(city, item, wisp)
    row = city.get(run)
    assert (row.wisp, row.wisp_elsewhere, row.state, row.lease.owner) == (wisp, True, RunState.RUNNING, None)
    assert items(city, run)[0] == ("cook", "done")
    assert len(city.events("automation.completed")) == 1
    ended, late = cook(city, "two")
    city.run(review.cancel, ended, ctx=city.context)
    cooked(city, late, other)
    assert (city.get(ended).wisp, city.get(ended).state) == (other, RunState.CANCELED)
    assert timeline(city, ended).count("wisp_cooked") == 1
    assert len(city.events("automation.completed")) == 1, "nothing was begun for one that was called off"


@pytest.mark.parametrize(
    ("closed", "state", "reason"), [(True, RunState.SUCCEEDED, "wisp_closed"), (False, RunState.FAILED, "wisp_gone")]
)
def test_a_run_ends_with_its_wisp_and_once(city: City, closed: bool, state: RunState, reason: str) -> None:  # noqa: FBT001
    run, _ = cook(city, "one")
    ended = city.run(cooking.end_wisp, run, closed=closed, ctx=city.context)
    assert (ended.state, ended.reason) == (state, reason)
    assert city.run(cooking.end_wisp, run, closed=closed, ctx=city.context) is None


def test_the_last_event_that_a_run_covers_is_told_of_runs_that_events_set_off(city: City) -> None:
    city.add("hears", gate="event", on="x.y")
    city.emit("x.y")
    (fired,) = city.tick().fired
    row = city.get(fired)
    seq = lambda run: city.read(cooking.event_seq, run)  # noqa: E731
    assert seq(row) == city.trigger("hears").state.event_cursor
    assert seq(changed(row, trigger_kind="cron")) is None
    assert seq(changed(row, trigger_event=None)) is None
    assert seq(changed(row, trigger_event="tev_gone")) is None
