"""The filter of runs: what is understood, and what is refused with a word about it."""

from datetime import UTC, datetime, timedelta

import pytest

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.domain.runs.query import Condition, CostBound, Field, QueryWrong, RunQuery, Sign, Word, parse, passes

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def words(*texts: str) -> tuple[Word, ...]:
    return tuple(Word(one.removesuffix("*"), one.endswith("*")) for one in texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", RunQuery()),
        ("  ", RunQuery()),
        ("state:failed", RunQuery((Condition(Field.STATE, words("failed")),))),
        ("state:failed,timed_out", RunQuery((Condition(Field.STATE, words("failed", "timed_out")),))),
        ("state:failed state:timed_out", RunQuery((Condition(Field.STATE, words("failed", "timed_out")),))),
        ("automation:nightly*", RunQuery((Condition(Field.AUTOMATION, words("nightly*")),))),
        ("automation:a:rig:web", RunQuery((Condition(Field.AUTOMATION, words("a:rig:web")),))),
        ("-reason:budget", RunQuery((Condition(Field.REASON, words("budget"), negated=True),))),
        ('reason:"exit 1, or so"', RunQuery((Condition(Field.REASON, words("exit 1, or so")),))),
        ('reason:"a b",c', RunQuery((Condition(Field.REASON, words("a b", "c")),))),
        ('rig:""', RunQuery((Condition(Field.RIG, words("")),))),
        ("claimed:me,bob", RunQuery((Condition(Field.CLAIMED, words("ada", "bob")),))),
        ("cost:>1 cost:<=2.50", RunQuery(costs=(CostBound(Sign.MORE, 1.0), CostBound(Sign.AT_MOST, 2.5)))),
        ("cost:>=$3", RunQuery(costs=(CostBound(Sign.AT_LEAST, 3.0),))),
        ("since:2d", RunQuery(since=NOW - timedelta(days=2))),
        ("until:2026-11-15T08:00Z", RunQuery(until=datetime(2026, 11, 15, 8, tzinfo=UTC))),
        ("since:2026-11-15", RunQuery(since=datetime(2026, 11, 15, tzinfo=UTC))),
        (
            " trigger:cron  -action:exec ",
            RunQuery((Condition(Field.TRIGGER, words("cron")), Condition(Field.ACTION, words("exec"), negated=True))),
        ),
    ],
)
def test_a_query_is_understood(text: str, expected: RunQuery) -> None:
    assert parse(text, NOW, me="ada") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cost:1", "has no sign and amount"),
        ("cost:>much", "has no sign and amount"),
        ("cost:>-1", "has no sign and amount"),
        ("-cost:>1", "turn its sign round"),
        ("failed", "`failed` does not begin with a field"),
        ("stat:failed", "did you mean `state`?"),
        ("color:red", "there are state, automation"),
        ("state:faild", "did you mean `failed`?"),
        ("state:", "has no value"),
        ("state:a,,b", "has no value, or an empty one"),
        ("state:,failed", "has no value, or an empty one"),
        ("automation:a*b", "not at its end"),
        ("since:soon", "neither a duration nor a time"),
        ("since:1d since:2d", "`since` stands twice"),
        ("-since:1d", "use `until`"),
        ("payload.repo:acme", "`payload.repo` cannot be searched"),
        ('reason:"open', "does not begin with a field"),
        ("state:*", "is not one of state"),
        ("x" * 3000, "more than 2000 characters"),
        ("rig:a " * 41, "more than 40 terms"),
        ("since:99999999999999w", "neither a duration"),
    ],
)
def test_what_is_not_understood_is_named(text: str, said: str) -> None:
    with pytest.raises(QueryWrong) as wrong:
        parse(text, NOW)
    assert said in wrong.value.message
    assert wrong.value.misfits[0].pointer == "/q"


def test_absent_values_are_empty_texts() -> None:
    run = Run("run_1", "a", RunState.FAILED, NOW)
    assert passes(parse('rig:""', NOW), run)
    assert not passes(parse('-rig:""', NOW), run)
    assert passes(parse("-reason:x", NOW), run)
