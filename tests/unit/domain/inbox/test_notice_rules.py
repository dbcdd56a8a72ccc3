"""Who is told of an item, and when."""

from datetime import UTC, datetime, time

import pytest

from lamplighter.domain.inbox.items import InboxItem, Kind, Need, State
from lamplighter.domain.inbox.notices import (
    Notice,
    NoticeState,
    QuietHours,
    Rule,
    What,
    is_held,
    quiet_hours,
    told_of,
    told_of_recovery,
)
from lamplighter.kit.records import changed

NOW = datetime(2026, 11, 17, 23, 30, tzinfo=UTC)
ENDS = frozenset({"failed", "needs_human", "timed_out"})


def item(kind: Kind = Kind.FAILED, *, count: int = 1, subject: str = "nightly") -> InboxItem:
    return changed(Need(kind, "f", subject, NOW).item("inb_1", NOW), count=count)


@pytest.mark.parametrize(
    ("one", "rule", "told"),
    [
        (item(), Rule("team", ENDS), True),
        (item(Kind.TIMED_OUT), Rule("team", frozenset({"failed"})), False),
        (item(Kind.SKIPPED), Rule("team", frozenset({"failed"})), True),
        (item(count=2), Rule("team", ENDS, 3), False),
        (item(count=3), Rule("team", ENDS, 3), True),
        (item(count=9), Rule("team", ENDS, 3), True),
        (item(Kind.NEEDS_HUMAN), Rule("team", ENDS, 3), True),
        (item(Kind.QUARANTINED), Rule("team", frozenset(), 3), True),
        (item(), Rule("inbox", ENDS), False),
        (item(), Rule("none", ENDS), False),
        (item(Kind.DESTINATION, subject="team"), Rule("team", ENDS), False),
        (item(Kind.DESTINATION, subject="team"), Rule("other", ENDS), True),
    ],
)
def test_a_destination_is_told_what_its_rule_names(one: InboxItem, rule: Rule, told: bool) -> None:  # noqa: FBT001
    assert told_of(one, [rule]) == ([rule.destination] if told else [])


def notice(state: NoticeState, what: What = What.OPENED) -> Notice:
    return Notice("ntc_1", "team", "inb_1", what, {}, NOW, state)


@pytest.mark.parametrize(
    ("how", "earlier", "told"),
    [
        ("succeeded", notice(NoticeState.SENT), True),
        ("succeeded", notice(NoticeState.PENDING), True),
        ("succeeded", notice(NoticeState.HELD), False),
        ("succeeded", notice(NoticeState.DROPPED), False),
        ("succeeded", notice(NoticeState.FAILED), False),
        ("dismissed", notice(NoticeState.SENT), False),
        ("resolved", notice(NoticeState.SENT), False),
        ("succeeded", notice(NoticeState.SENT, What.RECOVERED), False),
    ],
)
def test_whoever_was_told_is_told_that_it_is_over_by_itself(how: str, earlier: Notice, told: bool) -> None:  # noqa: FBT001
    one = changed(item(), state=State.SETTLED, settled_how=how)
    assert told_of_recovery(one, [earlier]) == (["team"] if told else [])


@pytest.mark.parametrize(
    ("hours", "at", "held"),
    [
        ("22:00-07:00", time(21, 59), False),
        ("22:00-07:00", time(22, 0), True),
        ("22:00-07:00", time(0, 0), True),
        ("22:00-07:00", time(6, 59, 59), True),
        ("22:00-07:00", time(7, 0), False),
        ("12:00-13:00", time(12, 30), True),
        ("12:00-13:00", time(13, 0), False),
        ("12:00-13:00", time(0, 0), False),
    ],
)
def test_quiet_hours_may_go_past_midnight(hours: str, at: time, held: bool) -> None:  # noqa: FBT001
    found = quiet_hours(hours)
    assert found is not None
    assert found.hold(datetime.combine(NOW.date(), at, UTC)) is held


def test_questions_and_quarantines_are_told_at_any_hour() -> None:
    night = QuietHours(time(22), time(7))
    assert is_held(item(), night, NOW)
    assert not is_held(item(Kind.NEEDS_HUMAN), night, NOW)
    assert not is_held(item(Kind.QUARANTINED), night, NOW)
    assert not is_held(item(), None, NOW)
    assert quiet_hours("") is None
