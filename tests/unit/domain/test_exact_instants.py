"""Rules at the very instant at which they turn, and tables told here once more, word for word."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lamplighter.domain.automations.catch_up import plan as catch_up
from lamplighter.domain.automations.events import SeenEvent, Taken, take
from lamplighter.domain.automations.gates import Due
from lamplighter.domain.automations.model import Cron, Event
from lamplighter.domain.automations.policies import CatchUp, CatchUpMode
from lamplighter.domain.automations.state import Timing
from lamplighter.domain.runs.lease import Lease
from lamplighter.domain.runs.model import MOVES, Run, RunState
from lamplighter.domain.runs.verdict import overdue
from lamplighter.domain.sessions.crashes import CrashLimit, Life, SessionHistory, next_start, quarantined_until
from lamplighter.domain.sessions.idle import Draining, DrainReason, drain_overdue
from lamplighter.kit.cron import parse_cron

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)

TABLE = """
    queued      enriching    worker
    enriching   ready        worker
    ready       running      worker
    queued      failed       finalizer outbox worker
    enriching   failed       finalizer outbox worker
    ready       failed       finalizer outbox worker
    running     failed       completion finalizer outbox worker
    queued      timed_out    finalizer
    enriching   timed_out    finalizer
    ready       timed_out    finalizer
    running     timed_out    finalizer
    queued      canceled     person policy
    enriching   canceled     person policy
    ready       canceled     person policy
    running     canceled     person policy
    queued      skipped      policy worker
    enriching   skipped      policy worker
    ready       skipped      policy worker
    running     skipped      policy worker
    running     succeeded    completion worker
    running     needs_human  completion finalizer
    failed      succeeded    person
    needs_human succeeded    person
    timed_out   succeeded    person
    failed      failed       person
    needs_human failed       person
    timed_out   failed       person
"""


def test_who_may_move_a_run_from_where_to_where() -> None:
    written = {tuple(line.split()[:2]): set(line.split()[2:]) for line in TABLE.strip().splitlines()}
    assert {
        (before.value, after.value): {one.value for one in movers} for (before, after), movers in MOVES.items()
    } == (written)


def test_a_lease_is_over_at_its_very_end() -> None:
    lease = Lease(1, "own_1", NOW)
    assert (lease.live(NOW - INSTANT), lease.live(NOW)) == (True, False)


def test_a_deadline_is_passed_after_its_very_instant() -> None:
    run = Run("run_1", "a", RunState.RUNNING, NOW, deadline_at=NOW)
    assert (overdue(run, NOW), overdue(run, NOW + INSTANT)) == (False, True)


def test_a_drain_is_overdue_after_its_very_instant() -> None:
    marks = Draining(NOW - MINUTE, DrainReason.PERSON, acknowledged=False)
    assert (drain_overdue(marks, MINUTE, NOW), drain_overdue(marks, MINUTE, NOW + INSTANT)) == (False, True)


@pytest.mark.parametrize(("late", "runs"), [(timedelta(hours=2), 1), (timedelta(hours=2) + INSTANT, 0)])
def test_a_slot_as_late_as_it_may_be_still_runs(late: timedelta, runs: int) -> None:
    policy = CatchUp(CatchUpMode.ONE, timedelta(hours=2))
    at = NOW - late
    gate = Cron(parse_cron(f"{at.minute} {at.hour} 2 3 *"))
    at = at.replace(second=0, microsecond=0)
    made = catch_up(policy, gate, Due("slot", at, at, "late"), at + late, Timing(ZoneInfo("UTC")))
    assert len(made.fire) == runs
    assert (made.missed is None) == bool(runs)


def test_an_expression_that_names_all_hours_but_one_does_not_come_every_hour() -> None:
    assert [parse_cron(text).every_hour for text in ("0 * * * *", "0 0-23 * * *", "0 0-22 * * *", "0 1-23 * * *")] == [
        True, True, False, False,
    ]  # fmt: skip


# ── sessions that start again and again ───────────────────────────────────────────────────────────────────────────────


def lived(*spans: tuple[float, float], wished: frozenset[int] = frozenset()) -> SessionHistory:
    """Lives by when they began and how long they lasted, in seconds."""
    return SessionHistory(
        tuple(
            Life(NOW + timedelta(seconds=at), NOW + timedelta(seconds=at + span), wished=number in wished)
            for number, (at, span) in enumerate(spans)
        )
    )


def test_a_quarantine_ends_when_fewer_starts_than_the_limit_lie_within_the_window() -> None:
    """With more starts than the limit in sight it is not the first of them that counts."""
    limit = CrashLimit(count=2, window=timedelta(minutes=10))
    history = lived((0, 1), (60, 1), (120, 1))
    now = NOW + timedelta(seconds=130)
    until = quarantined_until(history, limit, now)
    assert until == NOW + timedelta(seconds=60) + limit.window
    assert quarantined_until(history, limit, until - INSTANT) == until
    assert quarantined_until(history, limit, until) is None


def test_a_life_of_a_minute_is_not_short_and_a_wished_end_begins_a_new_row() -> None:
    now = NOW + timedelta(seconds=200)
    ended = NOW + timedelta(seconds=110)
    assert next_start(lived((0, 1), (100, 10)), now) == ended + timedelta(seconds=1)
    assert next_start(lived((0, 60), (100, 10)), now) == ended
    assert next_start(lived((0, 59.999), (100, 10)), now) == ended + timedelta(seconds=1)
    assert next_start(lived((0, 1), (100, 10), wished=frozenset({0})), now) == ended
    assert next_start(lived((0, 1), (100, 10), wished=frozenset({1})), now) == now


# ── chains of causes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_passes_on_the_longest_of_the_chains_that_led_to_it() -> None:
    chains: list[tuple[str, ...]] = [("a",), ("b", "c", "d"), ("e", "f")]
    events = [SeenEvent(number, "x.y", NOW, causes=chain) for number, chain in enumerate(chains, 1)]
    assert take(Event("x.y", batch=9), 0, events, "mine").causes == ("b", "c", "d")
    assert Taken((), 0).causes == ()
