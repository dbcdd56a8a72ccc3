"""What is told of a run: to its program about what set it off, and to people about what it waits for."""

from datetime import timedelta

import pytest
from automation_city import City
from test_pipeline_cases import AGENT

from lamplighter.domain.runs.model import RunState
from lamplighter.kit.clock import rfc3339
from lamplighter.kit.records import changed
from lamplighter.services.automations import registering, snapshots
from lamplighter.services.runs.views import waits_for
from lamplighter.services.runs.workers import said


def test_a_program_is_told_its_trigger_slot_and_payload(city: City) -> None:
    city.add("swept", gate="cron", schedule="*/5 * * * *")
    city.advance(minutes=6)
    (fired,) = city.tick().fired
    row = city.get(fired)
    event = city.read(lambda tx: tx.trigger_events.get(row.trigger_event))
    assert event.slot
    told = said(row, event)
    assert told == {
        "automation": "swept", "run": fired, "trigger": {"id": row.trigger, "kind": "cron"}, "slot": event.slot,
        "fired_at": rfc3339(row.created_at), "events": [], "payload": None,
    }  # fmt: skip
    assert said(row, None) == told | {"slot": None}, "retention may have deleted the event"
    city.add("by-hand")
    by_hand = city.get(city.run_now("by-hand", payload={"lamp": 7}).run)
    event = city.read(lambda tx: tx.trigger_events.get(by_hand.trigger_event))
    assert (said(by_hand, event)["slot"], said(by_hand, event)["payload"]) == (None, {"lamp": 7})


def test_only_a_run_that_is_ready_and_held_waits_for_something(city: City) -> None:
    city.add("sweep", agent=AGENT)
    row = changed(city.get(city.run_now("sweep").run), state=RunState.READY)
    assert waits_for(row) is None
    assert waits_for(changed(row, reason="login")) == "login"
    assert (
        waits_for(changed(row, reason="login", error="Claude Code is not signed in."))
        == "Claude Code is not signed in."
    )
    assert waits_for(changed(row, error="left over")) is None
    for state in set(RunState) - {RunState.READY}:
        assert waits_for(changed(row, state=state, reason="login")) is None, state


@pytest.mark.parametrize(("enabled", "left_out"), [(True, False), (True, True), (False, False)])
def test_silence_is_waited_for_only_where_an_automation_can_fire(city: City, *, enabled: bool, left_out: bool) -> None:
    known = snapshots.of_row(city.add("a", gate="cooldown", interval="1h", quiet_after="2h"))
    now = city.clock.now()
    made = registering.new_row(changed(known, enabled=enabled), "aut_1", by="ada", now=now, left_out=left_out)
    expected = now + timedelta(hours=2) if enabled and not left_out else None
    assert (made.quiet_at, made.enabled, made.left_out) == (expected, enabled, left_out)
    edited = registering.edited_row(made, changed(known, enabled=True), now, left_out=False)
    assert (edited.enabled, edited.quiet_at) == (True, now + timedelta(hours=2))
