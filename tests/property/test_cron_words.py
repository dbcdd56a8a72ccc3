"""The days that the plain words of a cron expression name, read back from the words, are the days it fires on."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamplighter.kit.cron import CronExpression, parse_cron
from lamplighter.kit.cron_words import DAY_NAMES, MONTH_NAMES, Days, day_words

FIRST, YEARS = datetime(2023, 12, 31, 23, 59), timedelta(days=3 * 365 + 1)  # noqa: DTZ001  a wall time has no zone
EVERY_DAY = frozenset((FIRST + timedelta(days=1 + count)).date() for count in range(YEARS.days))


def terms(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ranges = st.tuples(number, number).map(lambda pair: "{}-{}".format(*sorted(pair)))
    steps = st.integers(1, most).map("/{}".format)
    return st.one_of(st.just("*"), number.map(str), ranges, st.builds(str.__add__, st.just("*") | ranges, steps))


def fields(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(terms(low, high, most), min_size=1, max_size=3).map(",".join)


texts = st.builds("0 6 {} {} {}".format, fields(1, 31, 31), fields(1, 12, 12), fields(0, 7, 7))


def possible(text: str) -> CronExpression | None:
    try:
        return parse_cron(text)
    except ValueError:  # it never comes, such as the 30th of February
        return None


@given(texts)
@settings(max_examples=300, deadline=None)
@example("0 6 1-31 * 1")
@example("0 6 * * 0-0")
@example("0 6 * * sun-sun")
@example("0 6 * * 0,7")
@example("0 6 31 * *")
@example("0 6 13 2,3 fri")
@example("0 6 */2 * 1")
@example("0 6 *,5 * 1")
def test_the_words_name_exactly_the_days_that_fire(text: str) -> None:
    expression = possible(text)
    if expression is None:
        return
    fired = frozenset(fired_days(expression))
    assert named_days(day_words(expression.days)) == fired
    assert frozenset(filter(expression.days.include, EVERY_DAY)) == fired
    assert expression.in_words() == f"At 06:00 {day_words(expression.days) or 'every day'}"


def fired_days(expression: CronExpression) -> Iterator[date]:
    for wall in expression.walls(FIRST):
        if wall > FIRST + YEARS:
            return
        yield wall.date()


def named_days(words: str) -> frozenset[date]:
    """Read the words as a person would."""
    words, _, months = words.partition(", only in ")
    both = re.fullmatch(r"on the (.+) of the month and on every (.+)", words)
    narrowed = re.fullmatch(r"on (.+) if it is the (.+) of the month", words)
    if both is not None:
        found = dates(both[1]) | on_weekdays(both[2])
    elif narrowed is not None:
        found = on_weekdays(narrowed[1]) & dates(narrowed[2])
    else:
        simple = re.fullmatch(r"|every day in (.+)|on the (.+) of (.+)|on (.+?)(?: in (.+))?", words)
        assert simple is not None, words
        found = dates(simple[2]) & on_weekdays(simple[4])
        months = simple[1] or simple[5] or ("" if simple[3] in {None, "the month"} else simple[3])
    return found & in_months(months)


def dates(words: str | None) -> frozenset[date]:
    wanted = numbers(words, [ordinal(day) for day in range(1, 32)])
    return frozenset(day for day in EVERY_DAY if day.day - 1 in wanted)


def on_weekdays(words: str | None) -> frozenset[date]:
    wanted = numbers(words, [*DAY_NAMES[1:], DAY_NAMES[0]])
    return frozenset(day for day in EVERY_DAY if day.weekday() in wanted)


def in_months(words: str | None) -> frozenset[date]:
    wanted = numbers(words, list(MONTH_NAMES))
    return frozenset(day for day in EVERY_DAY if day.month - 1 in wanted)


def numbers(words: str | None, names: list[str]) -> set[int]:
    """The places of the names listed; all of them where none is."""
    found: set[int] = set()
    for word in re.split(", | and ", words) if words else [f"{names[0]} through {names[-1]}"]:
        first, _, last = word.partition(" through ")
        row = range(names.index(first), names.index(last or first) + 1)
        assert not found.intersection(row), f"{words} names {word} twice"
        found.update(row)
    return found


def ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    return f"{number}{ends.get(number, 'th')}"


def test_a_day_that_fits_either_field_is_included_only_where_either_is_enough() -> None:
    friday_the_first = date(2024, 3, 1)
    first, friday, monday = frozenset({1}), frozenset({5}), frozenset({1})
    assert Days(first, friday).include(friday_the_first)
    assert not Days(first, monday).include(friday_the_first)
    assert Days(first, monday, either=True).include(friday_the_first)
