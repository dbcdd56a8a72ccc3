"""A scheduler in miniature, with outages at random: every slot is fired or on record as missed, and only once."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter.domain.automations.catch_up import plan
from lamplighter.domain.automations.events import SeenEvent, take
from lamplighter.domain.automations.gates import Due, check
from lamplighter.domain.automations.model import Cooldown, Cron, Event, Schedule
from lamplighter.domain.automations.policies import CatchUp, CatchUpMode
from lamplighter.domain.automations.state import Timing, after_firing, clock_set_back, passed_over, registered, when_of
from lamplighter.kit.cron import parse_cron
from lamplighter.kit.schedule import Daily, Hourly, next_runs

STARTS = [
    ("America/New_York", datetime(2026, 10, 31, 12, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 7, 12, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 0, tzinfo=UTC)),
    ("UTC", datetime(2026, 6, 23, 12, tzinfo=UTC)),
]
GATES = [
    Schedule(Hourly(30)),
    Schedule(Daily(2, 30)),
    Cron(parse_cron("*/15 * * * *")),
    Cron(parse_cron("0,30 1-3 * * *")),
    Cron(parse_cron("5 */2 * * *")),
]
policies = st.builds(
    CatchUp,
    st.sampled_from(CatchUpMode),
    st.timedeltas(timedelta(minutes=1), timedelta(hours=30)),
    st.integers(1, 5),
)
waits = st.lists(st.timedeltas(timedelta(seconds=1), timedelta(hours=7)), min_size=1, max_size=25)
jitters = st.sampled_from([timedelta(0), timedelta(minutes=2), timedelta(hours=1)])


@given(st.sampled_from(STARTS), st.sampled_from(GATES), policies, waits, jitters)
@settings(max_examples=200, deadline=None)
def test_every_slot_is_fired_or_recorded_exactly_once(
    start: tuple[str, datetime], gate: Cron | Schedule, policy: CatchUp, pauses: list[timedelta], jitter: timedelta
) -> None:
    timing = Timing(ZoneInfo(start[0]), jitter, "job")
    now = start[1]
    state = registered(gate, now, timing)
    fired: list[datetime] = []
    missed = 0
    upto = now
    for pause in pauses:
        now += pause
        due = check(gate, state, now, timing)
        if not isinstance(due, Due):
            continue
        decided = plan(policy, gate, due, now, timing)
        fired.extend(slot.at for slot in decided.fire)
        missed += decided.missed.count if decided.missed else 0
        state = (
            after_firing(gate, state, decided.fire[-1].key, now, timing)
            if decided.fire
            else passed_over(gate, state, now, timing)
        )
        upto = due.at
    slots = list(next_runs(start[1], when_of(gate), timing.zone, upto))
    assert len(fired) == len(set(fired))
    assert set(fired) <= set(slots)
    assert len(fired) + missed == len(slots)
    assert fired == sorted(fired)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60), st.integers(1, 5), st.data())
def test_every_matching_event_is_delivered_once_and_in_order(
    kinds: list[tuple[str, bool]], batch: int, data: st.DataObject
) -> None:
    at = datetime(2026, 6, 23, tzinfo=UTC)
    events = [
        SeenEvent(seq, f"bead.{kind}", at, {}, ("job",) if own else ())
        for seq, (kind, own) in enumerate(kinds, start=1)
    ]
    gate = Event("bead.a", batch=batch)
    cursor, delivered = 0, []
    while cursor < len(events):
        page = [one for one in events if one.seq > cursor][: data.draw(st.integers(1, 10))]
        taken = take(gate, cursor, page, "job")
        assert len(taken.events) <= batch
        assert taken.cursor > cursor
        delivered.extend(one.seq for one in taken.events)
        cursor = taken.cursor
    assert delivered == [one.seq for one in events if one.type == "bead.a" and not one.causes]


steps = st.lists(
    st.tuples(st.timedeltas(timedelta(seconds=1), timedelta(hours=2)), st.sampled_from([0, 0, 0, 1, 30, 90_000])),
    min_size=1,
    max_size=40,
)


@given(st.sampled_from([Cooldown(timedelta(seconds=5)), Cooldown(timedelta(hours=1)), *GATES]), steps)
@settings(max_examples=200, deadline=None)
def test_a_clock_set_back_makes_no_wait_longer_and_fires_no_slot_twice(
    gate: Cooldown | Cron | Schedule, moves: list[tuple[timedelta, int]]
) -> None:
    """`real` only goes on, `now` is what people set; keys stand for those that the store keeps."""
    timing = Timing(ZoneInfo("UTC"))
    now = real = datetime(2026, 6, 23, 12, 0, 1, tzinfo=UTC)
    state = registered(gate, now, timing)
    keys: set[str] = set()
    fired: list[datetime] = []
    for pause, back in moves:
        now, real = now + pause, real + pause
        if back:
            now -= timedelta(seconds=back)
            state = clock_set_back(gate, state, timedelta(seconds=back), now, timing)
        due = check(gate, state, now, timing)
        waited = None if not fired else real - fired[-1]
        if isinstance(gate, Cooldown):
            assert isinstance(due, Due) == (waited is None or waited >= gate.interval)
        elif state.next_due_at is not None:
            assert state.next_due_at - now <= timedelta(hours=24)
        if isinstance(due, Due):
            assert isinstance(gate, Cooldown) is False or due.slot not in keys
            fired += [] if due.slot in keys else [real]
            keys.add(due.slot)
            state = after_firing(gate, state, due.slot, now, timing)
