"""Check, next, explain and history as the store answers them."""

from datetime import timedelta
from typing import Any

from automation_city import City

from lamplighter.domain.automations.gates import Checked
from lamplighter.services.automations import editing, outlook


def checked(city: City, **keys: Any) -> dict[str, dict[str, Any]]:
    found = city.read(outlook.verdicts, now=city.clock.now(), rules=city.rules, **keys)
    return {one.scoped_name: one.as_json() for one in found}


def test_case_23_check_says_what_is_due_and_why(city: City) -> None:
    city.add("due", gate="cooldown", interval="24h")
    city.add("manual")
    city.add("asked", gate="condition", check="true")
    city.add("hears", gate="event", on="x.y")
    city.add("off", gate="cooldown", interval="1h", enabled=False)
    found = checked(city)
    assert (found["due"]["due"], found["due"]["reason"]) == (True, "never run")
    assert [name for name, one in found.items() if one["due"]] == ["due"]
    found = checked(city, checks={("asked", "condition"): Checked(0)})
    assert found["asked"]["due"] is True
    assert "disabled" in found["off"]["reason"]


def test_case_2_and_3_a_cooldown_tells_what_remains(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    city.finish(city.tick().fired[0])
    city.advance(hours=1)
    assert checked(city)["tidy"]["reason"] == "cooldown: 23h remaining"
    city.advance(hours=24)
    assert checked(city)["tidy"]["due"] is True


def test_next_lists_timed_firings_in_order_with_their_zone(city: City) -> None:
    city.add("a", gate="schedule", cadence="daily", hour=12, timezone="Europe/Berlin")
    city.add("b", gate="schedule", cadence="daily", hour=10)
    city.add("off", gate="schedule", cadence="daily", hour=10, enabled=False)
    now = city.clock.now()
    found = city.read(outlook.next_firings, (now, now + timedelta(days=2)), rules=city.rules, limit=9)
    assert [(one["scoped_name"], one["zone"]) for one in found] == [
        ("b", "UTC"), ("a", "Europe/Berlin"), ("b", "UTC"), ("a", "Europe/Berlin"),
    ]  # fmt: skip


def test_explain_tells_of_the_pause_the_gate_and_the_last_run(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    run = city.tick().fired[0]
    city.finish(run, "failed", "exit_1")
    city.run(editing.pause, act=city.act)
    told = " ".join(city.read(outlook.explained, "tidy", now=city.clock.now(), rules=city.rules))
    assert "paused" in told
    assert "cooldown" in told
    assert run in told
    assert "exit_1" in told


def test_the_shape_has_the_state_of_each_trigger(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="24h")
    city.tick()
    (standing,) = city.read(outlook.standings)
    shape = outlook.shape(standing, city.rules)
    (trigger,) = shape["triggers"]
    assert (trigger["kind"], trigger["last_fired_at"]) == ("cooldown", "2026-03-02T09:00:00.000000Z")
    assert trigger["next_due_at"] == "2026-03-03T09:00:00.000000Z"
