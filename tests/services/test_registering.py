"""What becomes of triggers and of the wait for silence when an automation is edited, switched, or looked after anew."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from automation_city import City

from lamplighter.services.automations import editing, registering, snapshots
from lamplighter.store.triggers import hook_key

HOUR = timedelta(hours=1)
EVERY_HOUR = {"gate": "cooldown", "interval": "1h"}
HEARS = {"gate": "event", "on": "x.*"}


def edit(city: City, name: str, **changes: Any) -> None:
    city.run(editing.edit, name, changes, rules=city.rules, ctx=city.context)


def switch(city: City, name: str, *, enabled: bool) -> None:
    city.run(editing.set_enabled, name, enabled=enabled, rules=city.rules, ctx=city.context)


def head(city: City) -> int:
    return int(city.read(lambda tx: tx.events.head()))


# ── triggers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("keys", "due", "event_key", "zone"),
    [
        (EVERY_HOUR, timedelta(0), None, None),
        ({"gate": "cron", "schedule": "0 12 * * *"}, 3 * HOUR, None, "UTC"),
        ({"gate": "schedule", "cadence": "daily", "hour": 12}, 3 * HOUR, None, "UTC"),
        ({"gate": "cron", "schedule": "0 12 * * *", "timezone": "UTC"}, 3 * HOUR, None, None),
        ({"gate": "condition", "check": "true"}, None, None, None),
        (HEARS, timedelta(0), "x.*", None),
        ({"gate": "webhook", "connection": "gh"}, None, hook_key("gh"), None),
        ({"gate": "manual"}, None, None, None),
    ],
    ids=lambda value: value.get("gate", "") if isinstance(value, dict) else "",
)
def test_a_new_trigger_is_looked_at_when_its_gate_may_open(
    city: City, keys: dict[str, Any], due: timedelta | None, event_key: str | None, zone: str | None
) -> None:
    city.emit("x.y")
    end_of_log = head(city)
    city.add("light", **keys)
    found = city.trigger("light")
    assert found.state.next_due_at == (None if due is None else city.clock.now() + due)
    assert (found.armed, found.event_key, found.zone, found.held_by) == (True, event_key, zone, None)
    assert found.state.event_cursor == (end_of_log if keys["gate"] == "event" else 0)


def test_one_without_events_has_no_place_in_the_log_and_one_with_them_begins_at_its_end(city: City) -> None:
    city.emit("x.y")
    both = [{"id": "often", **EVERY_HOUR}, {"id": "hears", **HEARS}]
    city.add("light", triggers=both)
    city.emit("x.y")
    before = city.trigger("light", "hears")
    edit(city, "light", description="other")
    assert city.trigger("light", "hears") == before
    assert [row.position for row in (city.trigger("light", "often"), before)] == [0, 1]


def test_an_edit_moves_the_time_of_the_trigger_that_it_changes_and_of_no_other(city: City) -> None:
    two = [{"id": "a", **EVERY_HOUR}, {"id": "b", "gate": "cooldown", "interval": "2h"}]
    city.add("light", triggers=two, overlap="allow")
    city.tick()
    now = city.clock.now()
    city.advance(minutes=30)
    edit(city, "light", triggers=[two[0], two[1] | {"interval": "5h"}])
    assert city.trigger("light", "a").state.next_due_at == now + HOUR
    assert city.trigger("light", "b").state.next_due_at == now + 5 * HOUR
    edit(city, "light", triggers=[two[1]])
    light = city.row("light").id
    assert [row.id for row in city.read(lambda tx: tx.triggers.of(light))] == ["b"]
    assert city.trigger("light", "b").state.next_due_at == now + 2 * HOUR


def test_a_trigger_of_another_kind_begins_anew(city: City) -> None:
    city.add("light", **EVERY_HOUR)
    city.finish(city.tick().fired[0])
    city.advance(minutes=30)
    edit(city, "light", gate="cron", schedule="0 * * * *")
    edit(city, "light", **EVERY_HOUR)
    found = city.trigger("light").state
    assert (found.last_fired_at, found.next_due_at, found.registered_at) == (
        None, city.clock.now(), city.clock.now(),
    )  # fmt: skip


def test_what_is_enabled_again_waits_for_what_is_to_come_and_keeps_when_it_fired(city: City) -> None:
    city.add("timed", gate="cron", schedule="*/10 * * * *")
    city.add("rests", **EVERY_HOUR)
    city.add("hears", **HEARS)
    run = next(run for run in city.tick().fired if city.get(run).automation == "rests")
    city.finish(run)
    began = city.clock.now()
    for name in ("timed", "rests", "hears"):
        switch(city, name, enabled=False)
        assert not city.trigger(name).armed
    city.emit("x.y")
    city.advance(minutes=35)
    for name in ("timed", "rests", "hears"):
        switch(city, name, enabled=True)
        assert city.trigger(name).armed
    assert city.trigger("timed").state.next_due_at == began + timedelta(minutes=40)
    assert city.trigger("rests").state.next_due_at == began + HOUR
    assert city.trigger("rests").state.last_fired_at == began
    assert city.trigger("hears").state.event_cursor >= head(city) - 1
    assert city.tick().fired == []


@pytest.mark.parametrize(("on", "moves"), [("x.*", False), ("y.*", True)])
def test_events_that_wait_are_dropped_only_where_others_are_listened_to(city: City, on: str, moves: bool) -> None:  # noqa: FBT001  a case
    city.add("hears", **HEARS)
    city.emit("x.y")
    before = city.trigger("hears").state.event_cursor
    edit(city, "hears", gate="event", on=on, match={"level": "high"})
    found = city.trigger("hears")
    assert (found.state.event_cursor > before, found.event_key) == (moves, on)
    assert found.state.next_due_at == city.clock.now()


def test_a_held_trigger_stays_held_until_runs_may_overlap(city: City) -> None:
    city.add("hears", **HEARS, overlap="queue")
    city.emit("x.y")
    (run,) = city.tick().fired
    city.emit("x.y")
    city.tick()
    assert city.trigger("hears").held_by == run
    edit(city, "hears", description="other")
    assert city.trigger("hears").held_by == run
    edit(city, "hears", overlap="allow")
    assert city.trigger("hears").held_by is None
    assert len(city.tick().fired) == 1


def test_another_zone_moves_only_the_schedules_that_go_by_the_city_s(city: City) -> None:
    daily = {"gate": "schedule", "cadence": "daily", "hour": 12}
    city.add("daily", **daily)
    city.add("fixed", **daily, timezone="UTC")
    city.add("often", **EVERY_HOUR)
    before = {name: city.trigger(name) for name in ("fixed", "often")}
    assert city.run(registering.rezone, city.rules, city.clock.now()) == 0
    rome = replace(city.rules, zone=ZoneInfo("Europe/Rome"))
    assert city.run(registering.rezone, rome, city.clock.now()) == 1
    moved = city.trigger("daily")
    assert (moved.state.next_due_at, moved.zone) == (city.clock.now() + 2 * HOUR, "Europe/Rome")
    assert {name: city.trigger(name) for name in before} == before
    assert city.run(registering.rezone, rome, city.clock.now()) == 0


# ── the wait for silence ──────────────────────────────────────────────────────────────────────────────────────────────


def test_silence_is_waited_for_from_the_last_change_and_only_while_it_is_armed(city: City) -> None:
    quiet = lambda name="watch": city.row(name).quiet_at  # noqa: E731
    city.add("off", **HEARS, quiet_after="1h", enabled=False)
    city.add("none", **HEARS)
    city.add("watch", **HEARS, quiet_after="1h")
    began = city.clock.now()
    assert (quiet(), quiet("off"), quiet("none")) == (began + HOUR, None, None)
    city.advance(minutes=10)
    switch(city, "watch", enabled=True)
    assert (quiet(), city.row("watch").armed_at) == (began + HOUR, began), "nothing has changed"
    edit(city, "watch", description="other")
    assert (quiet(), city.row("watch").armed_at) == (city.clock.now() + HOUR, began)
    edit(city, "watch", quiet_after="3h")
    assert quiet() == city.clock.now() + 3 * HOUR
    switch(city, "watch", enabled=False)
    assert quiet() is None
    city.advance(minutes=10)
    switch(city, "watch", enabled=True)
    assert (quiet(), city.row("watch").armed_at) == (city.clock.now() + 3 * HOUR, city.clock.now())


# ── switched by its definition, or here ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("was_on", "disabled_here", "is_on", "enabled", "reason", "failures"),
    [
        (True, "", True, True, "", 3),
        (True, "", False, False, "", 3),
        (True, "it failed", True, False, "it failed", 3),
        (False, "it failed", True, True, "", 0),
        (False, "", True, True, "", 0),
        (True, "it failed", False, False, "it failed", 3),
    ],
)
def test_a_new_definition_enables_only_by_switching_it_on_itself(  # noqa: PLR0917  a table
    city: City, was_on: bool, disabled_here: str, is_on: bool, enabled: bool, reason: str, failures: int,  # noqa: FBT001
) -> None:  # fmt: skip
    row = city.add("light", **EVERY_HOUR, enabled=was_on)
    row = replace(row, enabled=was_on and not disabled_here, disabled_reason=disabled_here, failures=3)
    definition = replace(snapshots.of_row(row), enabled=is_on, description="other")
    after = registering.edited_row(row, definition, city.clock.now() + HOUR)
    assert (after.enabled, after.disabled_reason, after.failures) == (enabled, reason, failures)
    assert (after.version, after.created_by, after.updated_at) == (1, "tester", city.clock.now() + HOUR)
