"""Firing as one transaction, on both databases."""

from datetime import timedelta

import pytest
from automation_city import City

from lamplighter.domain.automations.decisions import SkipReason
from lamplighter.domain.runs.model import RunState
from lamplighter.services.automations import due, editing, firing
from lamplighter.services.automations.queries import NEXT, NextFirings
from lamplighter.services.runs import review


def test_a_cooldown_that_never_ran_fires_at_once_with_all_its_facts(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    looked = city.tick()
    (run,) = looked.fired
    row = city.get(run)
    assert row.state is RunState.READY
    bead = city.read(lambda tx: tx.beads.get(row.bead))
    assert (bead.type, bead.labels, bead.run) == ("run", ("automation-run:tidy", "exec"), run)
    assert [event.run for event in city.events("automation.fired")] == [run]
    (entry,) = city.history("tidy")
    assert (entry["status"], entry["reason"], entry["run"]) == ("fired", "never run", run)
    assert city.read(lambda tx: tx.outbox.pending()) == 1
    assert city.trigger("tidy").state.next_due_at == city.clock.now() + timedelta(hours=1)


def test_case_16_a_second_dispatch_at_once_fires_nothing(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    assert len(city.tick().fired) == 1
    assert city.tick().fired == []


def test_case_8_a_new_daily_automation_waits_for_its_time(city: City) -> None:
    city.add("daily", gate="schedule", cadence="daily", hour=10, minute=0)
    assert city.tick().fired == []
    assert city.trigger("daily").state.next_due_at == city.clock.now() + timedelta(hours=1)
    city.advance(minutes=61)
    assert len(city.tick().fired) == 1
    assert city.trigger("daily").state.last_slot is not None
    assert city.trigger("daily").state.next_due_at > city.clock.now()


def test_a_due_slot_beside_a_run_under_way_is_skipped_and_counted_on_one_row(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *")
    city.advance(minutes=1)
    city.tick()
    for _ in range(3):
        city.advance(minutes=1)
        assert city.tick().fired == []
    fired, skipped = city.history("often")
    assert (fired["status"], skipped["status"], skipped["reason"], skipped["count"]) == (
        "fired", "skipped", "overlap", 3,
    )  # fmt: skip
    assert len(city.events("automation.skipped")) == 1


def test_case_11_under_queue_the_slots_missed_during_a_run_become_exactly_one(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *", overlap="queue")
    city.advance(minutes=1)
    (first,) = city.tick().fired
    for _ in range(3):
        city.advance(minutes=1)
        assert city.tick().fired == []
    assert city.trigger("often").held_by == first
    city.finish(first)
    (second,) = city.tick().fired
    assert city.tick().fired == []
    city.finish(second)
    assert city.tick().fired == []


def test_a_slot_that_waits_for_a_run_is_fired_once_its_automation_lets_them_overlap(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *", overlap="queue")
    for _ in range(2):
        city.advance(minutes=1)
        city.tick()
    assert city.trigger("often").held_by is not None
    city.run(editing.edit, "often", {"overlap": "allow"}, rules=city.rules, ctx=city.context)
    assert len(city.tick().fired) == 1
    assert city.trigger("often").held_by is None


def test_replace_ends_the_earlier_run_first(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *", overlap="replace")
    city.advance(minutes=1)
    (first,) = city.tick().fired
    city.advance(minutes=1)
    (second,) = city.tick().fired
    assert (city.get(first).state, city.get(first).reason) == (RunState.CANCELED, "replaced")
    assert city.get(second).state is RunState.READY


def test_an_ended_run_closes_its_bead_its_trigger_event_and_tells_the_bus(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    row = city.finish(run)
    bead = city.read(lambda tx: tx.beads.get(row.bead))
    assert (bead.status.value, bead.labels) == ("closed", ("automation-run:tidy", "exec"))
    assert [entry["status"] for entry in city.history("tidy")] == ["completed"]
    assert len(city.events("automation.completed")) == 1
    events = city.shown(run)["events"]
    assert [(one["type"], one["to"]) for one in events] == [
        ("run_created", "ready"), ("status_transition", "running"), ("status_transition", "succeeded"),
    ]  # fmt: skip


def test_case_14_the_fifth_scheduled_failure_disables_in_the_same_transaction(city: City) -> None:
    city.add("flaky", gate="cron", schedule="* * * * *")
    for _ in range(5):
        city.advance(minutes=1)
        (run,) = city.tick().fired
        city.finish(run, "failed", "exit_1")
    row = city.row("flaky")
    assert (row.enabled, row.failures) == (False, 5)
    assert "5 times" in row.disabled_reason
    assert len(city.events("automation.disabled")) == 1
    city.advance(minutes=1)
    assert city.tick().looked_at == 0


def test_case_13_a_success_after_four_failures_starts_a_new_count(city: City) -> None:
    city.add("flaky", gate="cron", schedule="* * * * *")
    for state in ("failed", "failed", "failed", "failed", "succeeded"):
        city.advance(minutes=1)
        (run,) = city.tick().fired
        city.finish(run, state)
    assert (city.row("flaky").failures, city.row("flaky").enabled) == (0, True)


def test_case_15_failures_by_hand_do_not_count(city: City) -> None:
    city.add("flaky")
    for _ in range(10):
        city.finish(city.run_now("flaky").run, "failed")
    assert (city.row("flaky").failures, city.row("flaky").enabled) == (0, True)


def test_case_16_enabling_resets_the_count_and_renaming_does_not(city: City) -> None:
    city.add("flaky", gate="cron", schedule="* * * * *")
    for _ in range(5):
        city.advance(minutes=1)
        city.finish(city.tick().fired[0], "failed")
    city.run(editing.edit, "flaky", {"name": "renamed"}, rules=city.rules, ctx=city.context)
    assert (city.row("renamed").failures, city.row("renamed").enabled) == (5, False)
    city.run(editing.set_enabled, "renamed", enabled=True, rules=city.rules, ctx=city.context)
    assert (city.row("renamed").failures, city.row("renamed").enabled) == (0, True)
    city.advance(minutes=1)
    assert len(city.tick().fired) == 1


def test_case_23_a_changed_schedule_forgets_its_old_time(city: City) -> None:
    city.add("daily", gate="schedule", cadence="daily", hour=10)
    city.run(editing.edit, "daily", {"hour": 18}, rules=city.rules, ctx=city.context)
    assert city.trigger("daily").state.next_due_at == city.clock.now() + timedelta(hours=9)
    city.advance(hours=2)
    assert city.tick().fired == []


def test_case_25_a_run_outlives_its_automation(city: City) -> None:
    city.add("tidy", gate="cooldown", interval="1h")
    (run,) = city.tick().fired
    city.start(run)
    city.run(editing.delete, "tidy", ctx=city.context)
    row = city.get(run)
    from lamplighter.domain.runs.model import By, Mover

    by = By(Mover.WORKER, "worker", row.lease.version)
    city.run(review.end, run, review.Ending(RunState.SUCCEEDED), by, ctx=city.context)
    assert city.get(run).state is RunState.SUCCEEDED
    assert city.read(lambda tx: tx.triggers.next_due_at()) is None
    assert city.history("tidy")[0]["status"] == "completed"


def test_case_21_after_three_days_off_one_late_run_and_the_missed_slots_are_on_record(city: City) -> None:
    city.add("daily", gate="schedule", cadence="daily", hour=10)
    city.advance(days=3, hours=2)
    assert len(city.tick().fired) == 1
    missed, fired = sorted(city.history("daily"), key=lambda entry: entry["status"], reverse=True)
    assert (missed["reason"], missed["count"], fired["status"]) == ("missed", 3, "fired")
    city.advance(hours=1)
    assert city.tick().fired == []


def test_case_21_under_skip_none_runs_late(city: City) -> None:
    city.add("daily", gate="schedule", cadence="daily", hour=10, catch_up="skip")
    city.advance(days=3, hours=2)
    assert city.tick().fired == []
    (missed,) = city.history("daily")
    assert (missed["reason"], missed["count"]) == ("missed", 4)


def test_caught_up_slots_run_one_after_another(city: City) -> None:
    city.add("hourly", gate="schedule", cadence="hourly", minute=0, catch_up={"mode": "all", "limit": 3})
    city.advance(hours=5)
    while fired := city.tick().fired:
        assert len(fired) == 1
        city.finish(fired[0])
    slots = {entry["slot"] for entry in city.history("hourly") if entry["status"] == "completed"}
    assert slots == {"2026-03-02T12:00Z", "2026-03-02T13:00Z", "2026-03-02T14:00Z"}


def test_an_edit_while_slots_are_caught_up_loses_none_of_them(city: City) -> None:
    city.add("hourly", gate="schedule", cadence="hourly", minute=0, catch_up={"mode": "all", "limit": 3})
    city.advance(hours=5)
    while fired := city.tick().fired:
        city.run(editing.edit, "hourly", {"timeout": "7s"}, rules=city.rules, ctx=city.context)
        assert city.tick().fired == []
        city.finish(fired[0])
    slots = [entry["slot"] for entry in city.history("hourly") if entry["status"] == "completed"]
    assert sorted(slots) == ["2026-03-02T12:00Z", "2026-03-02T13:00Z", "2026-03-02T14:00Z"]


def test_a_suspended_automation_passes_slots_over_keeps_its_events_and_its_neighbours_fire(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *")
    city.add("hears", gate="event", on="x.y", quiet_after="1h")
    city.add("other", gate="cron", schedule="* * * * *")
    city.tick()
    for name in ("often", "hears"):
        assert city.run(editing.set_suspended, name, suspended=True, ctx=city.context)
        assert not city.run(editing.set_suspended, name, suspended=True, ctx=city.context)
    city.advance(minutes=1)
    city.emit("x.y")
    (run,) = city.tick().fired
    assert city.get(run).automation == "other"
    city.finish(city.start(run).id)
    assert [entry["reason"] for entry in city.history("often")] == [SkipReason.AUTOMATION_SUSPENDED]
    with pytest.raises(firing.Blocked) as caught:
        city.run_now("often")
    assert "lamp automation resume" in caught.value.hint
    assert city.run(due.raise_quiet, limit=9, rules=city.rules, ctx=city.context) == []
    city.advance(minutes=58)
    city.run(editing.set_suspended, "hears", suspended=False, ctx=city.context)
    assert city.row("hears").quiet_at == city.clock.now() + timedelta(hours=1)
    fired = {city.get(run).automation for run in city.tick().fired}
    assert "hears" in fired
    assert "often" not in fired
    assert [event.subject for event in city.events("automation.suspended")] == ["often", "hears"]
    assert [event.subject for event in city.events("automation.resumed")] == ["hears"]


def test_a_suspension_outlives_a_changed_definition_and_shows_nothing_to_come(city: City) -> None:
    city.add("often", gate="cron", schedule="* * * * *")
    city.run(editing.set_suspended, "often", suspended=True, ctx=city.context)
    city.run(editing.edit, "often", {"timeout": "1m"}, rules=city.rules, ctx=city.context)
    assert city.row("often").suspended
    assert city.do(NEXT, NextFirings(days=1 / 24)) == []


@pytest.mark.parametrize("what", ["paused", "city", "rig"])
def test_a_pause_or_suspension_passes_slots_over_and_keeps_events(city: City, what: str) -> None:
    city.rules = type(city.rules)(city.rules.zone, prefixes={"web": "w"})
    city.add("often", gate="cron", schedule="* * * * *", rig="web")
    city.add("hears", gate="event", on="x.y", rig="web")
    city.tick()
    if what == "paused":
        assert city.run(editing.pause, ctx=city.context)
    else:
        city.rules = type(city.rules)(
            city.rules.zone, suspended=what == "city", suspended_rigs=frozenset({"web"} if what == "rig" else ())
        )
    city.advance(minutes=1)
    city.emit("x.y")
    assert city.tick().fired == []
    assert city.tick().looked_at == 0
    reason = {"paused": SkipReason.PAUSED, "city": SkipReason.CITY_SUSPENDED, "rig": SkipReason.RIG_SUSPENDED}[what]
    assert [entry["reason"] for entry in city.history("often:rig:web")] == [reason]
    with pytest.raises(firing.Blocked):
        city.run_now("often:rig:web")
    if what == "paused":
        assert city.run(editing.resume, ctx=city.context)
    else:
        city.rules = type(city.rules)(city.rules.zone)
        city.run(lambda tx: tx.triggers.release_blocked())
    (run,) = city.tick().fired
    assert city.get(run).automation == "hears:rig:web"


def test_run_by_hand_leaves_the_schedule_alone_and_is_refused_beside_another(city: City) -> None:
    city.add("daily", gate="schedule", cadence="daily", hour=10)
    before = city.trigger("daily")
    fired = city.run_now("daily", payload={"why": "test"})
    assert city.trigger("daily") == before
    with pytest.raises(firing.AlreadyRunning):
        city.run_now("daily")
    event = city.read(lambda tx: tx.trigger_events.get(fired.trigger_event))
    assert event.payload == {"payload": {"why": "test"}}


def test_a_failed_run_is_tried_again_later_with_a_growing_delay(city: City) -> None:
    city.add("flaky", gate="cooldown", interval="10d", retry={"count": 2, "backoff": "10s"})
    (first,) = city.tick().fired
    city.finish(first, "failed", "exit_1")
    second = city.runs_of("flaky")[1]
    assert (second.retries, second.attempt, second.state) == (first, 1, RunState.READY)
    assert city.read(lambda tx: tx.outbox.next_due_at()) == city.clock.now() + timedelta(seconds=10)
    city.advance(seconds=10)
    city.finish(second.id, "failed", "exit_1")
    assert city.read(lambda tx: tx.outbox.next_due_at()) == city.clock.now() + timedelta(seconds=20)
    city.advance(seconds=20)
    city.finish(city.runs_of("flaky")[2].id, "failed", "exit_1")
    assert len(city.runs_of("flaky")) == 3
    assert city.row("flaky").failures == 1
    assert len({row.bead for row in city.runs_of("flaky")}) == 3


def test_silence_is_raised_once_and_a_firing_ends_it(city: City) -> None:
    from lamplighter.services.automations import due

    city.add("watch", gate="event", on="x.y", quiet_after="1h")

    def raised() -> list[str]:
        found: list[str] = city.run(due.raise_quiet, limit=10, rules=city.rules, ctx=city.context)
        return found

    assert raised() == []
    city.advance(minutes=61)
    assert raised() == ["watch"]
    city.advance(hours=5)
    assert raised() == []
    city.emit("x.y")
    city.finish(city.tick().fired[0])
    city.advance(minutes=61)
    assert raised() == ["watch"]
    assert len(city.events("automation.quiet")) == 2
