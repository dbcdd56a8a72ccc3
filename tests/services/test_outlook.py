"""Check, next, explain and history as the store answers them."""

from typing import Any

from automation_city import City

from lamplighter.domain.automations.gates import Checked
from lamplighter.kit.shapes import to_json
from lamplighter.services.automations import editing, outlook
from lamplighter.services.automations.queries import (
    HISTORY,
    LIST,
    NEXT,
    AutomationHistory,
    ListAutomations,
    NextFirings,
)
from lamplighter.services.automations.views import VerdictView


def checked(city: City, **keys: Any) -> dict[str, VerdictView]:
    found = city.read(outlook.verdicts, now=city.clock.now(), rules=city.rules, **keys)
    return {one.scoped_name: one.view() for one in found}


def test_case_23_check_says_what_is_due_and_why(city: City) -> None:
    city.add("due", gate="cooldown", interval="24h")
    city.add("manual")
    city.add("asked", gate="condition", check="true")
    city.add("hears", gate="event", on="x.y")
    city.add("off", gate="cooldown", interval="1h", enabled=False)
    found = checked(city)
    assert (found["due"].due, found["due"].reason) == (True, "never run")
    assert [name for name, one in found.items() if one.due] == ["due"]
    found = checked(city, checks={("asked", "condition"): Checked(0)})
    assert found["asked"].due is True
    assert "disabled" in found["off"].reason


def test_case_2_and_3_a_cooldown_tells_what_remains(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    city.finish(city.tick().fired[0])
    city.advance(hours=1)
    assert checked(city)["tidy"].reason == "cooldown: 23h remaining"
    city.advance(hours=24)
    assert checked(city)["tidy"].due is True


def test_next_lists_timed_firings_in_order_with_their_zone(city: City) -> None:
    city.add("a", gate="schedule", cadence="daily", hour=12, timezone="Europe/Berlin")
    city.add("b", gate="schedule", cadence="daily", hour=10)
    city.add("off", gate="schedule", cadence="daily", hour=10, enabled=False)
    assert [(one.scoped_name, one.zone) for one in city.do(NEXT, NextFirings(days=2))] == [
        ("b", "UTC"), ("a", "Europe/Berlin"), ("b", "UTC"), ("a", "Europe/Berlin"),
    ]  # fmt: skip


def test_explain_tells_once_how_long_a_cooldown_takes(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    city.finish(city.tick().fired[0])
    city.advance(hours=1)
    told = " ".join(city.read(outlook.explained, "tidy", now=city.clock.now(), rules=city.rules))
    assert "(Every day) is not due. It comes next at" in told
    assert told.count("23 h") == 1


def test_explain_tells_of_the_pause_the_gate_and_the_last_run(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    run = city.tick().fired[0]
    city.finish(run, "failed", "exit_1")
    city.run(editing.pause, ctx=city.context)
    told = " ".join(city.read(outlook.explained, "tidy", now=city.clock.now(), rules=city.rules))
    assert "paused" in told
    assert "cooldown" in told
    assert run in told
    assert "failed (exit 1)" in told


def test_the_shape_has_the_state_of_each_trigger(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    city.tick()
    (found,) = city.do(LIST, ListAutomations())
    (trigger,) = to_json(found)["triggers"]
    assert (trigger["kind"], trigger["last_fired_at"]) == ("cooldown", "2026-03-02T09:00:00.000000Z")
    assert trigger["next_due_at"] == "2026-03-03T09:00:00.000000Z"
    assert trigger["last_slot"] == city.trigger("tidy").state.last_slot != ""
    assert (trigger["event_cursor"], trigger["held_by"], trigger["checked_at"]) == (None, None, None)


def test_what_a_condition_said_and_how_far_events_were_read_stand_at_their_triggers(city: City) -> None:
    city.add("asks", gate="condition", check="true")
    city.add("hears", gate="event", on="lamp.*")
    city.emit("lamp.lit")
    city.tick()
    asked = city.trigger("asks")
    city.run(lambda tx: tx.triggers.checked(asked, "exit 1", city.clock.now()))
    asks, hears = (to_json(one)["triggers"][0] for one in city.do(LIST, ListAutomations()))
    assert (asks["checked_at"], asks["check_result"]) == ("2026-03-02T09:00:00.000000Z", "exit 1")
    assert asks["event_cursor"] is None
    assert hears["event_cursor"] == city.trigger("hears").state.event_cursor


def test_each_firing_is_on_record_with_its_reason(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h", overlap="allow")
    city.run_now("tidy")
    city.tick()
    found = {one.kind: to_json(one)["reason"] for one in city.do(HISTORY, AutomationHistory("tidy"))}
    assert found == {"manual": "run by hand", "cooldown": "never run"}
