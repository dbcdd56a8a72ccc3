"""Ended runs are counted once each, some time after their end, by hour, automation, outcome and model."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from automation_city import City

from lamplighter.domain.runs.model import By, Mover, RunState
from lamplighter.kit.errors import Conflict
from lamplighter.kit.shapes import to_json
from lamplighter.services import retention, rollups
from lamplighter.services.rollups import SHOW_COST, SHOW_STRIP, ShowCost, ShowStrip
from lamplighter.services.rollups import By as Grouped
from lamplighter.services.runs import review
from lamplighter.store.engine.numbering import number_committed
from lamplighter.store.tx import Tx
from lamplighter.store.url import PostgresUrl

LATER = rollups.SETTLED + timedelta(seconds=1)


def number(city: City) -> None:
    if isinstance(city.place, PostgresUrl):
        city.run(lambda tx: number_committed(tx.db))


def count(city: City) -> int:
    number(city)
    found: int = city.run(rollups.follow, now=city.clock.now())
    return found


def ended(city: City, name: str, state: str = "succeeded", *, cost: float | None = None, tokens: int = 0) -> str:
    run = city.run_now(name).run
    assert run is not None
    if cost is not None or tokens:
        city.run(lambda tx: tx.runs.spent(run, tokens=tokens, cost=cost, now=city.clock.now()))
    if city.get(run).action == "agent":
        city.run(_begin, run)
        ending = review.Ending(RunState(state))
        city.run(review.end, run, ending, By(Mover.COMPLETION, "agent"), ctx=city.context)
    else:
        city.finish(run, state)
    return run


def _begin(tx: Tx, run: str) -> None:
    row = tx.runs.get(run)
    assert row is not None
    tx.runs.swap(row, replace(row, state=RunState.RUNNING, started_at=row.created_at))


def cost(city: City, **ask: Any) -> Any:
    found = city.do(SHOW_COST, ShowCost(**ask))
    assert json.dumps(to_json(found))
    return found


def test_runs_are_counted_once_and_only_when_no_more_words_can_come(city: City) -> None:
    city.add("check", overlap="allow")
    city.add("light", agent={"prompt": "Light.", "model": "big"}, overlap="allow")
    for state in ("succeeded", "succeeded", "failed"):
        ended(city, "check", state)
    ended(city, "light", cost=0.25, tokens=100)
    ended(city, "light")
    assert count(city) == 0
    assert cost(city).total.runs == 0
    city.clock.advance(LATER)
    assert count(city) > 0
    assert count(city) == 0
    by_model = cost(city, by=Grouped.MODEL)
    assert [(line.key, line.runs, line.told, line.cost, line.tokens) for line in by_model.lines] == [
        ("big", 2, 1, 0.25, 100),
        ("", 3, 0, 0.0, 0),
    ]
    by_name = cost(city, by=Grouped.AUTOMATION)
    assert {line.key: line.outcomes for line in by_name.lines} == {
        "check": {"failed": 1, "succeeded": 2},
        "light": {"succeeded": 2},
    }
    assert (by_name.total.runs, by_name.total.agent_runs, by_name.total.told) == (5, 2, 1)
    by_day = cost(city)
    assert len(by_day.lines) == 14
    assert [line.runs for line in by_day.lines] == [*[0] * 13, 5]
    assert cost(city, automation="light").total.runs == 2


def test_a_run_that_a_person_resolves_moves_to_its_new_outcome(city: City) -> None:
    city.add("light", agent={"prompt": "Light."}, overlap="allow")
    run = ended(city, "light", "failed", cost=1.5)
    city.clock.advance(LATER)
    count(city)
    assert cost(city).total.outcomes == {"failed": 1}
    ending = review.Ending(RunState.SUCCEEDED, "resolved")
    city.run(review.end, run, ending, By(Mover.PERSON, "tester"), ctx=city.context)
    city.clock.advance(LATER)
    count(city)
    found = cost(city).total
    assert (found.outcomes, found.cost, found.told) == ({"succeeded": 1}, 1.5, 1)


def test_skipped_slots_and_other_events_count_nothing(city: City) -> None:
    city.add("check")
    city.emit("automation-like.completed", {"run": "run_x", "state": "succeeded"})
    city.emit("lamp.lit", "not even a record")
    city.clock.advance(LATER)
    assert count(city) > 0
    assert cost(city).total.runs == 0


def test_days_are_those_of_the_city_and_strips_show_every_day(city: City) -> None:
    city.add("check", overlap="allow")
    ended(city, "check")
    city.clock.advance(timedelta(days=2))
    ended(city, "check", "failed")
    city.clock.advance(LATER)
    count(city)
    strips = city.do(SHOW_STRIP, ShowStrip(days=4))
    assert [one.automation for one in strips] == ["check"]
    assert [dict(day.outcomes) for day in strips[0].days] == [{}, {"succeeded": 1}, {}, {"failed": 1}]
    assert city.do(SHOW_STRIP, ShowStrip("check", 4)) == strips
    assert [day.runs for day in city.do(SHOW_STRIP, ShowStrip("none", 3))[0].days] == [0, 0, 0]
    several = city.do(SHOW_STRIP, ShowStrip(days=4, among=("none", "check")))
    assert [one.automation for one in several] == ["check", "none"]
    assert several[0] == strips[0]
    assert [day.runs for day in several[1].days] == [0, 0, 0, 0]
    assert city.do(SHOW_STRIP, ShowStrip(days=1, among=("check",)))[0].days[0].runs == 1


def test_events_are_kept_until_they_are_counted_and_rollups_until_their_age(city: City) -> None:
    city.add("check")
    ended(city, "check")
    number(city)
    head = city.read(lambda tx: tx.events.head())
    city.run(lambda tx: tx.cities.scanned(head))
    assert city.read(retention.unread_events) == 0
    city.clock.advance(LATER)
    count(city)
    assert city.read(retention.unread_events) > 0
    assert city.run(rollups.prune_rollups, before=city.clock.now() - timedelta(hours=2)) == 0
    assert city.run(rollups.prune_rollups, before=city.clock.now() + timedelta(hours=2)) == 1
    assert cost(city).total.runs == 0


def test_two_processes_never_count_the_same(city: City) -> None:
    city.add("check")
    ended(city, "check")
    number(city)
    city.clock.advance(LATER)

    def as_if_another_was_first(tx: Any) -> None:
        assert tx.rollups.advance(1, expected=0)
        assert not tx.rollups.advance(2, expected=0)

    city.run(as_if_another_was_first)
    count(city)
    with pytest.raises(Conflict):
        city.run(_late, city)


def _late(tx: Any, city: City) -> None:
    class Behind:
        """The position as a process read it before another one went on."""

        def __getattr__(self, name: str) -> Any:
            return (lambda: 0) if name == "position" else getattr(tx.rollups, name)

    class Other:
        rollups = Behind()

        def __getattr__(self, name: str) -> Any:
            return getattr(tx, name)

    rollups.follow(Other(), now=city.clock.now())  # type: ignore[arg-type]  # a transaction with an older sight
