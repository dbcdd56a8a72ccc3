from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations.catch_up import Missed, Slot, plan
from lamplighter.domain.automations.events import (
    SeenEvent,
    loops,
    payload_matches,
    take,
    type_matches,
    undelivered,
)
from lamplighter.domain.automations.gates import Checked, Due, Evidence, NoBus, NotDue, Waiting, check
from lamplighter.domain.automations.model import Condition, Cooldown, Cron, Event, Gate, Manual, Schedule, Webhook
from lamplighter.domain.automations.policies import CatchUp, CatchUpMode
from lamplighter.domain.automations.state import (
    Timed,
    Timing,
    TriggerState,
    after_edit,
    after_firing,
    chance,
    jittered,
    passed_over,
    registered,
)
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import Daily, Once

UTC_TIMING = Timing(ZoneInfo("UTC"))
DAY = Cooldown(timedelta(hours=24))
AT_THREE = Cron(parse_cron("0 3 * * *"))
AT_NINE = Schedule(Daily(9, 0))
LONG_AGO = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_case_1_a_cooldown_that_never_ran_is_due() -> None:
    due = looked_at(DAY, registered(DAY, LONG_AGO, UTC_TIMING), at("23T12:00"))
    assert isinstance(due, Due)
    assert due.reason == "never run"


@pytest.mark.parametrize(("next_due", "due"), [(None, "23T12:00"), ("23T11:00", "23T11:00"), ("23T12:00", "23T12:00")])
def test_a_cooldown_that_never_ran_was_due_when_it_was_set_to_be(next_due: str | None, due: str) -> None:
    state = TriggerState(LONG_AGO, next_due_at=None if next_due is None else at(next_due))
    found = looked_at(DAY, state, at("23T12:00"))
    assert isinstance(found, Due)
    assert found.at == at(due)


def test_case_2_an_hour_after_a_run_a_daily_cooldown_tells_what_remains() -> None:
    found = looked_at(DAY, fired(DAY, at("23T11:00")), at("23T12:00"))
    assert found == NotDue("cooldown: 23h remaining", at("24T11:00"))


def test_case_3_after_the_interval_a_cooldown_is_due() -> None:
    due = looked_at(DAY, fired(DAY, at("22T11:00")), at("23T12:00"))
    assert isinstance(due, Due)
    assert due.reason == "elapsed 1d1h >= interval 1d"
    assert due.at == at("23T11:00")


def test_case_4_a_cron_is_due_at_its_minute_once() -> None:
    state = registered(AT_THREE, at("22T12:00"), UTC_TIMING)
    due = looked_at(AT_THREE, state, at("23T03:00"))
    assert isinstance(due, Due)
    assert (due.slot, due.reason) == ("2026-06-23T03:00[UTC]", "cron: schedule matched")
    after = after_firing(AT_THREE, state, due.slot, at("23T03:00:10"), UTC_TIMING)
    again = looked_at(AT_THREE, after, at("23T03:00:20"))
    assert again == NotDue("cron: already run this minute", at("24T03:00"))


def test_case_5_a_cron_is_not_due_at_another_time_and_knows_ranges_and_steps() -> None:
    state = registered(AT_THREE, at("23T04:00"), UTC_TIMING)
    assert looked_at(AT_THREE, state, at("23T12:00")) == NotDue("cron: schedule not matched", at("24T03:00"))
    working = Cron(parse_cron("*/15 9-17 * * 1-5"))
    state = registered(working, at("24T10:16"), UTC_TIMING)
    assert isinstance(looked_at(working, state, at("24T10:30")), Due)


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Checked(1), "condition: check failed with exit code 1"),
        (Checked(None), "condition: check timed out after 10s"),
        (None, "condition: not checked yet"),
    ],
)
def test_case_6_a_condition_that_does_not_pass_is_not_due(evidence: Evidence | None, reason: str) -> None:
    gate = Condition("false")
    assert looked_at(gate, registered(gate, LONG_AGO, UTC_TIMING), at("23T12:00"), evidence) == NotDue(reason)


def test_case_6_a_condition_that_passes_is_due_but_not_before_its_floor() -> None:
    gate = Condition("true", timedelta(minutes=5))
    state = registered(gate, LONG_AGO, UTC_TIMING)
    assert isinstance(looked_at(gate, state, at("23T12:00"), Checked(0)), Due)
    after = after_firing(gate, state, "x", at("23T12:00"), UTC_TIMING)
    assert looked_at(gate, after, at("23T12:01"), Checked(0)) == NotDue(
        "condition: 4m until the next check", at("23T12:05")
    )
    assert isinstance(looked_at(gate, after, at("23T12:05"), Checked(0)), Due)


def test_case_7_events_after_the_cursor_open_the_gate() -> None:
    gate, events = Event("bead.closed"), tuple(closed(seq) for seq in (1, 2, 3))
    first = looked_at(gate, cursor(0), at("23T12:00"), Waiting(events))
    assert isinstance(first, Due)
    assert first.taken is not None
    assert [one.seq for one in first.taken.events] == [1, 2, 3]
    assert (first.slot, first.reason) == ("seq:3", "event: 3 bead.closed events")
    second = looked_at(gate, cursor(2), at("23T12:00"), Waiting(events))
    assert isinstance(second, Due)
    assert second.reason == "event: 1 bead.closed event"
    third = looked_at(gate, cursor(3), at("23T12:00"), Waiting(events))
    assert third == NotDue("event: no matching bead.closed events", cursor=3)
    assert looked_at(gate, cursor(0), at("23T12:00"), NoBus()) == NotDue("event: no events provider")
    assert looked_at(gate, cursor(0), at("23T12:00")) == NotDue("event: no events provider")
    assert looked_at(gate, cursor(0), at("23T12:00"), NoBus("disk full")) == NotDue(
        "event: cannot read events: disk full"
    )


def test_case_8_a_new_event_trigger_starts_at_the_head() -> None:
    state = registered(Event("bead.closed"), LONG_AGO, UTC_TIMING, head=10)
    found = looked_at(Event("bead.closed"), state, at("23T12:00"), Waiting((closed(3), closed(10))))
    assert isinstance(found, NotDue)


def test_case_9_a_manual_automation_is_never_due() -> None:
    state = registered(Manual(), LONG_AGO, UTC_TIMING)
    assert looked_at(Manual(), state, at("23T12:00")) == NotDue("manual: fires only by `lamp automation run`")
    assert state.next_due_at is None
    assert isinstance(looked_at(Webhook("github"), state, at("23T12:00")), NotDue)


def test_case_8_a_new_daily_automation_gets_its_time_and_does_not_run() -> None:
    state = registered(AT_NINE, at("23T12:00"), UTC_TIMING)
    assert state.next_due_at == at("24T09:00")
    assert isinstance(looked_at(AT_NINE, state, at("23T12:00")), NotDue)


def test_case_9_a_time_one_minute_ago_fires_once_and_the_next_one_is_set() -> None:
    state = registered(AT_NINE, at("22T12:00"), UTC_TIMING)
    due = looked_at(AT_NINE, state, at("23T09:01"))
    assert isinstance(due, Due)
    assert due.reason == "schedule: matched, 1m late"
    after = after_firing(AT_NINE, state, due.slot, at("23T09:01"), UTC_TIMING)
    assert after.last_slot == "2026-06-23T09:00[UTC]"
    assert after.next_due_at == at("24T09:00")
    assert isinstance(looked_at(AT_NINE, after, at("23T09:01")), NotDue)


def test_case_10_a_slot_that_already_fired_only_moves_on() -> None:
    state = TriggerState(LONG_AGO, at("23T09:00"), None, "2026-06-23T09:00[UTC]")
    assert looked_at(AT_NINE, state, at("23T09:00")) == NotDue("schedule: already run this minute", at("24T09:00"))


def test_case_21_after_three_days_off_one_late_run_and_the_missed_slots_are_told() -> None:
    state = registered(AT_NINE, at("19T12:00"), UTC_TIMING)
    due = looked_at(AT_NINE, state, at("23T10:00"))
    assert isinstance(due, Due)
    late = plan(CatchUp(), AT_NINE, due, at("23T10:00"), UTC_TIMING)
    assert late.fire == (Slot("2026-06-23T09:00[UTC]", at("23T09:00"), timedelta(hours=1)),)
    assert late.missed == Missed(at("20T09:00"), at("22T09:00"), 3)
    none = plan(CatchUp(CatchUpMode.SKIP), AT_NINE, due, at("23T10:00"), UTC_TIMING)
    assert none.fire == ()
    assert none.missed == Missed(at("20T09:00"), at("23T09:00"), 4)


def test_a_slot_later_than_half_a_day_is_only_put_on_record() -> None:
    state = registered(AT_NINE, at("22T12:00"), UTC_TIMING)
    due = looked_at(AT_NINE, state, at("23T22:00"))
    assert isinstance(due, Due)
    found = plan(CatchUp(), AT_NINE, due, at("23T22:00"), UTC_TIMING)
    assert (found.fire, found.missed) == ((), Missed(at("23T09:00"), at("23T09:00"), 1))


def test_catching_up_on_all_keeps_its_limit_and_its_order() -> None:
    hourly = Cron(parse_cron("0 * * * *"))
    state = registered(hourly, at("23T00:30"), UTC_TIMING)
    due = looked_at(hourly, state, at("23T06:30"))
    assert isinstance(due, Due)
    policy = CatchUp(CatchUpMode.ALL, timedelta(hours=12), 3)
    found = plan(policy, hourly, due, at("23T06:30"), UTC_TIMING)
    assert [one.at for one in found.fire] == [at("23T04:00"), at("23T05:00"), at("23T06:00")]
    assert found.missed == Missed(at("23T01:00"), at("23T03:00"), 3)


def test_a_slot_on_time_is_fired_under_every_policy_and_nothing_is_missed() -> None:
    state = registered(AT_NINE, at("22T12:00"), UTC_TIMING)
    due = looked_at(AT_NINE, state, at("23T09:00:05"))
    assert isinstance(due, Due)
    for mode in CatchUpMode:
        found = plan(CatchUp(mode), AT_NINE, due, at("23T09:00:05"), UTC_TIMING)
        assert (found.fire, found.missed) == ((Slot("2026-06-23T09:00[UTC]", at("23T09:00")),), None)


def test_a_month_of_missed_minutes_is_counted_as_one_record() -> None:
    minutely = Cron(parse_cron("* * * * *"))
    state = registered(minutely, LONG_AGO, UTC_TIMING)
    due = looked_at(minutely, state, LONG_AGO + timedelta(days=30))
    assert isinstance(due, Due)
    found = plan(CatchUp(), minutely, due, LONG_AGO + timedelta(days=30), UTC_TIMING)
    assert found.missed is not None
    assert found.missed.count == 30 * 24 * 60 - 1


def test_a_cooldown_never_misses_anything() -> None:
    due = looked_at(DAY, fired(DAY, LONG_AGO), at("23T12:00"))
    assert isinstance(due, Due)
    assert plan(CatchUp(CatchUpMode.SKIP), DAY, due, at("23T12:00"), UTC_TIMING).missed is None


def test_once_is_done_after_it_fired() -> None:
    pin = Schedule(Once(at("23T09:00")))
    state = registered(pin, at("22T12:00"), UTC_TIMING)
    due = looked_at(pin, state, at("23T09:30"))
    assert isinstance(due, Due)
    assert plan(CatchUp(), pin, due, at("23T09:30"), UTC_TIMING).fire[0].late == timedelta(minutes=30)
    after = after_firing(pin, state, due.slot, at("23T09:30"), UTC_TIMING)
    assert after.next_due_at is None
    assert looked_at(pin, after, at("23T09:31")) == NotDue("schedule: no further time")
    assert looked_at(pin, after, at("23T09:30:40")) == NotDue("schedule: no further time")


def test_a_fired_once_stays_fired_when_it_is_seen_again() -> None:
    pin = Schedule(Once(at("23T09:00")))
    done = after_firing(pin, registered(pin, at("22T12:00"), UTC_TIMING), "x", at("23T09:30"), UTC_TIMING)
    assert isinstance(looked_at(pin, done, at("24T09:00")), NotDue)
    again = Timed(Schedule(Once(at("25T09:00"))), UTC_TIMING)
    assert after_edit(Timed(pin, UTC_TIMING), again, done, at("24T09:00"), head=0).next_due_at == at("25T09:00")


def test_case_23_a_changed_time_counts_from_now_and_the_old_one_never_fires() -> None:
    nine, six = Timed(AT_NINE, UTC_TIMING), Timed(Schedule(Daily(18, 0)), UTC_TIMING)
    state = registered(AT_NINE, at("22T12:00"), UTC_TIMING)
    changed = after_edit(nine, six, state, at("23T12:00"), head=0)
    assert changed.next_due_at == at("23T18:00")
    assert after_edit(nine, nine, state, at("23T12:00"), head=0) is state
    moved = Timed(AT_NINE, Timing(ZoneInfo("Asia/Tokyo")))
    assert after_edit(nine, moved, state, at("23T12:00"), head=0).next_due_at == at("24T00:00")
    other = after_edit(nine, Timed(Event("x"), UTC_TIMING), state, at("23T12:00"), head=7)
    assert (other.next_due_at, other.event_cursor) == (None, 7)


def test_passing_a_slot_over_moves_on_without_counting_as_fired() -> None:
    state = registered(AT_NINE, at("22T12:00"), UTC_TIMING)
    assert passed_over(AT_NINE, state, at("23T09:00:01"), UTC_TIMING).next_due_at == at("24T09:00")
    ran = fired(DAY, at("20T12:00"))
    skipped = passed_over(DAY, ran, at("23T13:00"), UTC_TIMING)
    assert (skipped.next_due_at, skipped.last_fired_at) == (at("24T12:00"), at("20T12:00"))
    assert isinstance(looked_at(DAY, skipped, at("23T14:00")), NotDue)
    assert isinstance(looked_at(DAY, skipped, at("24T12:00")), Due)
    never = passed_over(DAY, registered(DAY, LONG_AGO, UTC_TIMING), at("23T13:00"), UTC_TIMING)
    assert looked_at(DAY, never, at("23T14:00")) == NotDue("cooldown: 23h remaining", at("24T13:00"))


def test_jitter_is_the_same_everywhere_and_leaves_the_slot_alone() -> None:
    spread = Timing(ZoneInfo("UTC"), timedelta(minutes=10), "job")
    state = registered(AT_NINE, at("22T12:00"), spread)
    assert state.next_due_at is not None
    assert at("23T09:00") <= state.next_due_at < at("23T09:10")
    assert state == registered(AT_NINE, at("22T12:00"), spread)
    assert state != registered(AT_NINE, at("22T12:00"), Timing(ZoneInfo("UTC"), timedelta(minutes=10), "other"))
    assert isinstance(check(AT_NINE, state, state.next_due_at - timedelta(seconds=1), spread), NotDue)
    due = check(AT_NINE, state, state.next_due_at, spread)
    assert isinstance(due, Due)
    assert (due.slot, due.at) == ("2026-06-23T09:00[UTC]", at("23T09:00"))
    assert plan(CatchUp(CatchUpMode.SKIP), AT_NINE, due, state.next_due_at, spread).missed is None


def test_jitter_never_reaches_the_next_slot() -> None:
    minutely = Cron(parse_cron("* * * * *"))
    spread = Timing(ZoneInfo("UTC"), timedelta(hours=9), "job")
    for minute in range(60):
        slot = at("23T09:00") + timedelta(minutes=minute)
        moved = jittered(minutely, slot, spread)
        assert moved is not None
        assert slot <= moved <= slot + timedelta(seconds=30)
    pin = Schedule(Once(at("23T09:00")))
    assert jittered(pin, None, spread) is None
    assert jittered(pin, at("23T09:00"), spread) != at("23T09:00")
    assert all(0 <= chance(str(number)) < 1 for number in range(100))


def test_an_event_that_the_automation_led_to_never_opens_its_gate() -> None:
    gate = Event("bead.*")
    own, others = closed(1, ("b", "a")), closed(2, ("b",))
    taken = take(gate, 0, (own, others), "a")
    assert ([one.seq for one in taken.events], taken.cursor, taken.guarded) == ([2], 2, 1)
    assert taken.causes == ("b",)
    found = check(gate, cursor(0), at("23T12:00"), UTC_TIMING, Waiting((own,)), automation="a")
    assert found == NotDue("event: no matching bead.* events; 1 of its own making passed over", cursor=1)


def test_a_chain_of_causes_ends_at_its_eighth_link() -> None:
    assert not loops(closed(1, tuple("abcdefg")), "z")
    assert loops(closed(1, tuple("abcdefgh")), "z")


def test_two_automations_that_listen_to_each_other_come_to_rest() -> None:
    chain: tuple[str, ...] = ()
    firings = 0
    for number in range(100):
        name = "ab"[number % 2]
        if loops(closed(number, chain), name):
            break
        firings += 1
        chain = (name, *chain)
    assert firings == 2


def test_a_batch_is_a_limit_and_the_rest_waits_in_order() -> None:
    events = tuple(closed(seq) for seq in range(1, 8))
    first = take(Event("bead.closed", batch=3), 0, events, "a")
    assert ([one.seq for one in first.events], first.cursor) == ([1, 2, 3], 3)
    second = take(Event("bead.closed", batch=3), first.cursor, events, "a")
    assert [one.seq for one in second.events] == [4, 5, 6]


def test_an_empty_batch_has_no_causes() -> None:
    assert take(Event("x"), 0, (), "a").causes == ()


@pytest.mark.parametrize(
    ("pattern", "event_type", "expected"),
    [
        ("bead.closed", "bead.closed", True),
        ("bead.closed", "bead.created", False),
        ("bead.*", "bead.closed", True),
        ("bead.*", "beads.closed", False),
        ("bead.*", "bead", False),
        ("*", "anything.at.all", True),
    ],
)
def test_types_match_exactly_or_by_family(pattern: str, event_type: str, expected: bool) -> None:  # noqa: FBT001  a table's column
    assert type_matches(pattern, event_type) is expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, True),
        ({"status": "closed"}, True),
        ({"status": "clo*"}, True),
        ({"status": ["open", "closed"]}, True),
        ({"status": "open"}, False),
        ({"bead.priority": 1}, True),
        ({"bead.priority": True}, False),
        ({"bead.urgent": True}, True),
        ({"labels": "pool:*"}, True),
        ({"items.id": 2}, True),
        ({"items.id": 3}, False),
        ({"missing": "x"}, False),
        ({"status.deeper": "x"}, False),
    ],
)
def test_payloads_match_by_path(wanted: dict[str, Any], expected: bool) -> None:  # noqa: FBT001  a table's column
    payload = {
        "status": "closed",
        "bead": {"priority": 1, "urgent": True},
        "labels": ["x", "pool:coder"],
        "items": [{"id": 1}, {"id": 2}],
    }
    assert payload_matches(wanted, payload) is expected


def test_a_delivery_passes_by_event_and_payload() -> None:
    gate = Webhook("github", ("issues.*", "push"), {"ref": "refs/heads/*"})
    assert not undelivered(gate, "push", {"ref": "refs/heads/main"}, {})
    assert undelivered(gate, "release", {"ref": "refs/heads/main"}, {})
    assert undelivered(gate, "push", {"ref": "refs/tags/1"}, {})
    assert not undelivered(Webhook("github"), "anything", {}, {})


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-06-{text}").replace(tzinfo=UTC)


def looked_at(gate: Gate, state: TriggerState, now: datetime, evidence: Evidence | None = None) -> Due | NotDue:
    return check(gate, state, now, UTC_TIMING, evidence)


def fired(gate: Gate, when: datetime) -> TriggerState:
    return after_firing(gate, registered(gate, LONG_AGO, UTC_TIMING), "x", when, UTC_TIMING)


def cursor(seq: int) -> TriggerState:
    return TriggerState(LONG_AGO, event_cursor=seq)


def closed(seq: int, causes: tuple[str, ...] = ()) -> SeenEvent:
    return SeenEvent(seq, "bead.closed", at("23T11:00"), {}, causes)


def test_a_new_event_trigger_takes_what_comes_after_the_event_it_is_given() -> None:
    gate = Event("bead.closed")
    assert registered(gate, LONG_AGO, UTC_TIMING).event_cursor == 0
    assert registered(gate, LONG_AGO, UTC_TIMING, head=7).event_cursor == 7
