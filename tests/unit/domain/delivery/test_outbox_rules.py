from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamplighter.domain.delivery.outbox import (
    MOST_RECOVERIES,
    REQUIRED,
    Item,
    ItemKind,
    ItemState,
    NotClaimed,
    after_failure,
    claim,
    hand_back,
    malformed,
    new_item,
    put_off,
    recover,
    settle,
    take_back,
)

NOW = datetime(2026, 6, 23, 12, tzinfo=UTC)


def test_five_errors_wait_30_60_120_240_seconds_and_then_fail() -> None:
    item, now, delays = an_item(), NOW, []
    for _ in range(4):
        item = after_failure(claim(item, "w", now), item.claims + 1, "boom", now)
        delays.append((item.due_at - now).total_seconds())
        now = item.due_at
    assert delays == [30, 60, 120, 240]
    failed = after_failure(claim(item, "w", now), item.claims + 1, "boom", now)
    assert (failed.state, failed.attempts, failed.last_error) == (ItemState.FAILED, 5, "boom")
    assert failed.gives_up_run


def test_what_can_never_succeed_fails_at_once() -> None:
    item = after_failure(claim(an_item(), "w", NOW), 1, "unknown", NOW, permanent=True)
    assert (item.state, item.attempts) == (ItemState.FAILED, 1)


def test_a_dead_worker_costs_no_attempt_until_the_twentieth() -> None:
    item = an_item()
    for _ in range(MOST_RECOVERIES - 1):
        item = recover(claim(item, "w", NOW), NOW)
        assert (item.state, item.attempts, item.due_at) == (ItemState.PENDING, 0, NOW)
    item = recover(claim(item, "w", NOW), NOW)
    assert (item.state, item.last_error) == (ItemState.FAILED, "20 times a worker died on it or lost the database")
    assert recover(item, NOW) is item


def test_a_worker_that_hangs_loses_the_item_after_five_minutes_and_an_attempt() -> None:
    item = claim(an_item(), "w", NOW)
    assert take_back(item, NOW + timedelta(minutes=5)) is item
    later = NOW + timedelta(minutes=5, seconds=1)
    back = take_back(item, later)
    assert (back.state, back.attempts, back.due_at) == (ItemState.PENDING, 1, later)
    assert back.last_error == "w did not answer"


def test_a_result_that_comes_after_the_claim_was_lost_does_not_count() -> None:
    item = claim(recover(claim(an_item(), "w1", NOW), NOW), "w2", NOW)
    with pytest.raises(NotClaimed):
        settle(item, 1)
    with pytest.raises(NotClaimed):
        after_failure(item, 1, "late", NOW)
    with pytest.raises(NotClaimed):
        put_off(item, 1, NOW)
    assert settle(item, 2).state is ItemState.DONE


def test_an_item_is_claimed_when_due_and_once() -> None:
    with pytest.raises(NotClaimed):
        claim(an_item(), "w", NOW - timedelta(seconds=1))
    with pytest.raises(NotClaimed):
        claim(claim(an_item(), "w", NOW), "v", NOW)


def test_what_failed_before_a_part_was_done_counts_no_more() -> None:
    failed = after_failure(claim(an_item(), "w", NOW), 1, "no", NOW)
    mine = claim(failed, "w", failed.due_at)
    assert put_off(mine, 2, NOW).attempts == 1
    assert put_off(mine, 2, NOW, afresh=True).attempts == 0


def test_putting_off_costs_nothing() -> None:
    item = put_off(claim(an_item(), "w", NOW), 1, NOW + timedelta(minutes=1))
    assert (item.state, item.attempts, item.due_at) == (ItemState.PENDING, 0, NOW + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("kind", "payload", "told"),
    [
        ("dance", {}, "`dance` is not a kind of outbox item"),
        ("enqueue_execute", {}, "enqueue_execute needs `run`"),
        ("enqueue_execute", {"run": 3}, "enqueue_execute needs `run`"),
        ("write_artifact", {"run": ""}, "write_artifact needs `run`, `artifact`"),
        ("enqueue_execute", {"run": "run_1"}, ""),
    ],
)
def test_malformed_items_are_told(kind: str, payload: dict[str, Any], told: str) -> None:
    assert malformed(kind, payload) == told


def test_every_kind_says_what_it_needs() -> None:
    assert set(REQUIRED) == set(ItemKind)


def test_a_malformed_item_is_never_written() -> None:
    with pytest.raises(ValueError, match="needs `run`"):
        new_item("out_1", ItemKind.COOK, {}, NOW)


def test_only_a_failed_stage_fails_its_run() -> None:
    notice = new_item("out_1", ItemKind.NOTIFY_RUN_TERMINAL, {"run": "run_1"}, NOW)
    assert not after_failure(claim(notice, "w", NOW), 1, "x", NOW, permanent=True).gives_up_run
    assert not an_item().gives_up_run


def an_item() -> Item:
    return new_item("out_1", ItemKind.ENQUEUE_EXECUTE, {"run": "run_1"}, NOW)


def test_work_that_is_handed_back_pauses_longer_each_time_and_costs_no_attempt() -> None:
    item, pauses = an_item(), []
    for _ in range(7):
        item = hand_back(claim(replace(item, due_at=NOW), "w", NOW), NOW)
        pauses.append((item.due_at - NOW).total_seconds())
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert (item.attempts, item.recoveries) == (0, 7)
    assert hand_back(item, NOW) is item, "nobody holds it"
