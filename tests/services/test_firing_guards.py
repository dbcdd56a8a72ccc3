"""Guards around firing: chains of causes, one firing for one event, no retry of what was switched off, time limits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from automation_city import City

from lamplighter.domain.city.run_sections import Runs
from lamplighter.domain.runs.model import RunState
from lamplighter.domain.runs.verdict import Fail, Leave, SessionSeen, SessionState, verdict
from lamplighter.services.automations import editing, firing
from lamplighter.services.context import acting
from lamplighter.services.runs import finalizing, review


def by_hand_inside(city: City, name: str, run: str) -> str:
    inside = acting("agent", city.clock.now()).inside(run)
    fired: firing.Fired = city.run(firing.run_by_hand, firing.ByHand(name), rules=city.rules, ctx=inside)
    return fired.run


def test_a_run_started_by_hand_inside_a_run_has_that_one_for_its_cause(city: City) -> None:
    city.add("first")
    city.add("second")
    city.add("third")
    first = city.run_now("first").run
    second = by_hand_inside(city, "second", first)
    third = by_hand_inside(city, "third", second)
    assert [city.get(run).causes for run in (first, second, third)] == [(), ("first",), ("second", "first")]


def test_an_automation_is_not_fired_by_an_event_of_a_run_that_its_own_run_started_by_hand(city: City) -> None:
    city.add("hears", gate="event", on="lamp.lit", overlap="allow")
    city.add("helps")
    city.emit("lamp.lit")
    (heard,) = city.tick().fired
    helping = by_hand_inside(city, "helps", heard)
    city.emit("lamp.lit", by_run=helping)
    assert city.tick().fired == []
    city.emit("lamp.lit")
    assert len(city.tick().fired) == 1


def test_an_event_fires_a_trigger_once_even_where_its_cursor_falls_back(city: City) -> None:
    city.add("hears", gate="event", on="lamp.lit", overlap="allow")
    before = city.trigger("hears").state.event_cursor
    city.emit("lamp.lit")
    assert len(city.tick().fired) == 1
    back = "UPDATE triggers SET event_cursor = :before, next_due_at = 0 WHERE city_id = :city"
    city.run(lambda tx: tx.db.execute(back, {"before": before, "city": tx.city}))
    assert city.tick().fired == []
    assert len(city.runs_of("hears")) == 1


def test_what_was_disabled_while_it_ran_is_not_tried_again(city: City) -> None:
    for name in ("kept", "disabled"):
        city.add(name, retry={"count": 2, "backoff": "10s"})
    kept, disabled = city.run_now("kept").run, city.run_now("disabled").run
    city.start(disabled)
    city.run(editing.set_enabled, "disabled", enabled=False, rules=city.rules, ctx=city.context)
    city.finish(disabled, "failed", "exit_1")
    city.finish(kept, "failed", "exit_1")
    assert [row.retries for row in city.runs_of("kept")] == [None, kept]
    assert [row.id for row in city.runs_of("disabled")] == [disabled]


def test_an_agent_s_run_is_ended_at_the_timeout_of_its_automation_or_its_budget_of_time_the_sooner(
    city: City,
) -> None:
    limits: dict[str, dict[str, Any]] = {
        "timeout": {"timeout": "10m"},
        "budget": {"budget": {"time": "10m"}},
        "both": {"timeout": "10m", "budget": {"time": "20m"}},
        "neither": {},
    }
    for name, keys in limits.items():
        city.add(name, agent={"prompt": "Light the lamps."}, **keys)
        made = city.get(city.run_now(name).run)
        policy = finalizing.policy_of(review.snapshots_of(made), Runs())
        began = city.clock.now()
        at_work = replace(made, state=RunState.RUNNING, started_at=began, session_id="ses_1")
        seen = SessionSeen(SessionState.RUNNING, alive=True)
        assert verdict(at_work, seen, began + timedelta(minutes=10), policy) == Leave()
        late = verdict(at_work, seen, began + timedelta(minutes=11), policy)
        assert (late == Leave()) if name == "neither" else (isinstance(late, Fail) and late.reason == "budget_time")
