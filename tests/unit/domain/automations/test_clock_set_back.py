"""What the clock's being set back makes of a trigger's times: a wait goes on, a schedule has its next time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations.model import Condition, Cooldown, Cron, Event, Gate, Manual, Webhook
from lamplighter.domain.automations.state import Timing, TriggerState, clock_set_back, passed_over, registered
from lamplighter.kit.cron import parse_cron

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BY, HOUR = timedelta(hours=2), timedelta(hours=1)
UTC_TIMING = Timing(ZoneInfo("UTC"))
DAILY = Cron(parse_cron("30 9 * * *"))


@pytest.mark.parametrize(
    ("gate", "due", "becomes"),
    [
        (DAILY, NOW + timedelta(days=1), NOW + timedelta(minutes=30)),
        (Cooldown(HOUR), NOW + BY + HOUR, NOW + HOUR),
        (Condition("true", HOUR), NOW + BY + HOUR, NOW + HOUR),
        (Condition("true", None), None, None),
        (Event("x.y"), NOW + BY, NOW),
        (Event("x.y"), NOW - HOUR, NOW - HOUR),
        (Webhook("gh"), None, None),
        (Manual(), None, None),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, datetime) else "",
)
def test_no_trigger_waits_longer_than_it_would_have(gate: Gate, due: datetime | None, becomes: datetime | None) -> None:
    state = TriggerState(NOW + BY, next_due_at=due, last_fired_at=NOW + BY, last_slot="s", event_cursor=7)
    after = clock_set_back(gate, state, BY, NOW, UTC_TIMING)
    assert after == replace(state, registered_at=NOW, last_fired_at=NOW, next_due_at=becomes)
    earlier = replace(state, registered_at=NOW - HOUR, last_fired_at=None)
    moved = clock_set_back(gate, earlier, BY, NOW, UTC_TIMING)
    assert (moved.registered_at, moved.last_fired_at) == (NOW - HOUR, None)


@pytest.mark.parametrize(
    ("fired", "due"),
    [
        (None, HOUR),
        (timedelta(0), HOUR),
        (timedelta(minutes=59), timedelta(minutes=1)),
        (HOUR, HOUR),
        (HOUR * 2.5, HOUR / 2),
    ],
)
def test_a_rest_that_was_passed_over_keeps_its_beat(fired: timedelta | None, due: timedelta) -> None:
    state = TriggerState(NOW, last_fired_at=None if fired is None else NOW - fired)
    assert passed_over(Cooldown(HOUR), state, NOW, UTC_TIMING).next_due_at == NOW + due


def test_a_new_trigger_waits_for_its_next_time_or_is_looked_at_at_once() -> None:
    due = {
        type(gate).__name__: registered(gate, NOW, UTC_TIMING, head=5) for gate in (DAILY, Cooldown(HOUR), Event("x"))
    }
    assert {name: one.next_due_at for name, one in due.items()} == {
        "Cron": NOW + timedelta(minutes=30), "Cooldown": NOW, "Event": None,
    }  # fmt: skip
    assert {one.event_cursor for one in due.values()} == {5}
