"""Who fires and has room starts what needs nothing but the word in that transaction; all else waits in the outbox."""

from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.delivery.reach import Reach
from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.services import outbox
from lamplighter.services.automations import due, firing
from lamplighter.services.context import acting
from lamplighter.services.runs import claiming, review
from lamplighter.services.runs.workers import StartGrant
from lamplighter.store.runs import StaleRun

ME = review.Worker("own_me", "here")
OTHER = review.Worker("own_other", "here")


def fire(city: City, name: str, start_grant: StartGrant | None) -> firing.Fired:
    wanted = firing.ByHand(name, {"why": "a test"})
    found: firing.Fired = city.run(
        firing.run_by_hand, wanted, rules=city.rules, ctx=city.context, start_grant=start_grant
    )
    return found


def waiting(city: City) -> list[Any]:
    found: list[Any] = city.run(outbox.claim_due, "own_looks", city.clock.now(), limit=10)
    return found


def test_it_runs_as_soon_as_it_is_fired_under_its_starters_lease_and_nothing_waits_for_it(city: City) -> None:
    city.add("now")
    fired = fire(city, "now", StartGrant(ME, 1))
    assert fired.started is not None
    row = city.get(fired.run)
    assert row == fired.started.row
    assert (row.state, row.lease.owner, row.lease.version, row.node) == (
        RunState.RUNNING, "own_me", 1, "here",
    )  # fmt: skip
    assert row.started_at == city.clock.now()
    assert waiting(city) == []


def test_its_timeline_and_its_trigger_are_those_of_a_run_that_waited_for_its_start(city: City) -> None:
    city.add("now", overlap="allow")
    at_once = fire(city, "now", StartGrant(ME, 1))
    later = fire(city, "now", None)
    assert later.started is None
    started = city.run(claiming.take_due, ME, limit=1, ctx=city.context).started[0]

    def told(run: str) -> list[tuple[Any, ...]]:
        events = city.read(lambda tx: tx.runs.events(run))
        return [(one.number, one.type, one.from_state, one.to_state, one.actor, one.data) for one in events]

    assert told(at_once.run) == told(later.run)
    assert [number for number, *_ in told(at_once.run)] == [1, 2]
    assert at_once.started is not None
    assert at_once.started.trigger == started.trigger | {"run": at_once.run}
    assert at_once.started.trigger["payload"] == {"why": "a test"}


@pytest.mark.parametrize(
    "start_grant",
    [
        StartGrant(ME, 0),
        StartGrant(ME, 1, Reach("here", frozenset({"api"}), frozenset())),
        StartGrant(ME, 1, Reach("here", frozenset({"web"}), frozenset({"enqueue_execute"}))),
    ],
    ids=["without room", "in a rig it does not have", "of a kind it leaves to others"],
)
def test_what_it_may_not_start_waits_for_whoever_may(city: City, start_grant: StartGrant) -> None:
    name = city.add("there", rig="web").scoped_name
    fired = fire(city, name, start_grant)
    assert fired.started is None
    assert city.get(fired.run).state is RunState.READY
    assert [item.payload["run"] for item in waiting(city)] == [fired.run]


def test_in_a_rig_that_it_has_it_starts_it(city: City) -> None:
    name = city.add("there", rig="web").scoped_name
    assert fire(city, name, StartGrant(ME, 1, Reach("here", frozenset({"web"})))).started is not None


@pytest.mark.parametrize("keys", [{"agent": {"prompt": "do it", "preset": "shell"}}, {"formula": "feature"}])
def test_what_has_more_stages_goes_through_them(city: City, keys: dict[str, Any]) -> None:
    city.add("staged", **keys)
    fired = fire(city, "staged", StartGrant(ME, 1))
    assert fired.started is None
    assert [item.payload["run"] for item in waiting(city)] == [fired.run]


def test_a_pass_over_due_triggers_starts_as_many_as_there_is_room_for(city: City) -> None:
    for number in range(5):
        city.add(f"due{number}", gate="cooldown", interval="1h")
    ctx = acting("controller", city.clock.now())
    looked: due.PassReport = city.run(due.fire_due, limit=10, rules=city.rules, ctx=ctx, start_grant=StartGrant(ME, 2))
    assert len(looked.fired) == 5
    assert [one.row.id for one in looked.started] == looked.fired[:2]
    assert {item.payload["run"] for item in waiting(city)} == set(looked.fired[2:])


def test_one_cause_starts_one_run(city: City) -> None:
    city.add("now", overlap="allow")
    wanted = firing.ByHand("now", key="same")
    keys = {"rules": city.rules, "ctx": city.context, "start_grant": StartGrant(ME, 1)}
    first = city.run(firing.run_by_hand, wanted, **keys)
    again = city.run(firing.run_by_hand, wanted, **keys)
    assert (again.run, again.bead, again.started) == (first.run, first.bead, None)
    assert len(city.runs_of("now")) == 1


def test_a_repeated_request_is_told_of_its_run_whatever_has_become_of_the_automation(city: City) -> None:
    city.add("single", overlap="skip")
    keys = {"rules": city.rules, "ctx": city.context}
    first = city.run(firing.run_by_hand, firing.ByHand("single", key="k"), **keys)
    with pytest.raises(firing.AlreadyRunning):
        city.run(firing.run_by_hand, firing.ByHand("single", key="other"), **keys)
    assert city.run(firing.run_by_hand, firing.ByHand("single", key="k"), **keys).run == first.run


def test_its_holder_ends_it_as_he_knows_it_and_not_when_it_went_to_another(city: City) -> None:
    city.add("now", overlap="allow")
    mine, lost = (fire(city, "now", StartGrant(ME, 1)).started for _ in range(2))
    assert mine is not None
    assert lost is not None
    city.run(lambda tx: tx.runs.void_leases(ME.owner, now=city.clock.now()))
    adopted = {row.id: row for row in city.run(review.adopt, OTHER, city.clock.now())}
    by = By(Mover.WORKER, "worker", lost.row.lease.version)
    done = review.Ending(RunState.SUCCEEDED, exit_code=0, output_tail="well")
    with pytest.raises(StaleRun):
        city.run(review.end_held, lost.row, done, by, ctx=city.context)
    assert city.get(lost.row.id).state is RunState.RUNNING
    row = adopted[mine.row.id]
    city.run(review.end_held, row, done, By(Mover.WORKER, "worker", 2), ctx=city.context)
    ended = city.get(row.id)
    assert (ended.state, ended.exit_code, ended.output_tail) == (RunState.SUCCEEDED, 0, "well")
    assert (ended.lease.owner, ended.ended_at) == (None, city.clock.now())
    assert ended.started_at == row.started_at
