import re

import pytest

from lamplighter.kit.cron import parse_cron


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("61 * * * *", "`61 * * * *` has a minute of 61; minutes go from 0 to 59"),
        ("0 24 * * *", "`0 24 * * *` has an hour of 24; hours go from 0 to 23"),
        ("0 0 32 * *", "`0 0 32 * *` has a day of month of 32; days of month go from 1 to 31"),
        ("0 0 0 * *", "has a day of month of 0; days of month go from 1 to 31"),
        ("0 0 * 13 *", "has a month of 13; months go from 1 to 12 or jan to dec"),
        ("0 0 * * 8", "has a day of week of 8; days of week go from 0 to 7 or sun to sat"),
        ("0 0 * * fry", "has `fry` as a day of week"),
        ("*/0 * * * *", "has a minute step of 0; a step is a number from 1 up"),
        ("*/ * * * *", "has a minute step of nothing"),
        ("*/x * * * *", "has a minute step of x"),
        ("*/70 * * * *", "has a minute step of 70; there are 60 minutes, so a step goes from 1 to 60"),
        ("0 */25 * * *", "has an hour step of 25; there are 24 hours, so a step goes from 1 to 24"),
        ("0 0 */32 * *", "has a day of month step of 32; there are 31 days of month, so a step goes from 1 to 31"),
        ("0 0 * 1/13 *", "has a month step of 13; there are 12 months, so a step goes from 1 to 12"),
        ("0 0 * * mon-fri/8", "has a day of week step of 8; there are 7 days of week, so a step goes from 1 to 7"),
        ("30-10 * * * *", "has a minute range of 30-10; write the smaller one first"),
        ("1--2 * * * *", "has `-2` as a minute"),
        (", * * * *", "has `` as a minute"),
        ("٣ * * * *", "has `٣` as a minute"),
        ("* * * *", "has 4 fields; cron takes five"),
        ("0", "has 1 field; cron takes five"),
        ("", "has 0 fields"),
        ("0 0 30 2 *", "never comes within five years"),
        ("0 0 31 4,6 *", "never comes within five years"),
        ("0 0 ? * *", "has `?` as a day of month"),
        ("@dayly", "`@dayly` is not a schedule; did you mean `@daily`?"),
        ("@reboot", "is not a schedule"),
        ("0," * 60 + "0 * * * *", "at most 100 characters"),
    ],
)
def test_a_bad_expression_is_refused_with_its_field_and_limits(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_cron(text)


@pytest.mark.parametrize(
    ("text", "minutes", "hours"),
    [
        ("5,10 1-3 * * *", {5, 10}, {1, 2, 3}),
        ("*/20 */8 * * *", {0, 20, 40}, {0, 8, 16}),
        ("10/20 20/2 * * *", {10, 30, 50}, {20, 22}),
        ("0-30/10 0 * * *", {0, 10, 20, 30}, {0}),
        ("5-5/3 0 * * *", {5}, {0}),
    ],
)
def test_lists_ranges_and_steps(text: str, minutes: set[int], hours: set[int]) -> None:
    expression = parse_cron(text)
    assert (expression.minutes, expression.hours) == (minutes, hours)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0 0 * JAN-Mar Mon", "0 0 * 1-3 1"),
        ("0 0 * * fri-sun", "0 0 * * 5-7"),
        ("0 0 * * sun-tue", "0 0 * * 0-2"),
        ("0 0 * * 0-0", "0 0 * * 0"),
        ("0 0 * * sun-sun", "0 0 * * 0"),
        ("0 0 * * 7-0", "0 0 * * 7"),
        ("@weekly", "0 0 * * 0"),
        ("  0  3 * * * ", "0 3 * * *"),
    ],
)
def test_names_become_numbers(text: str, plain: str) -> None:
    assert parse_cron(text).plain == plain


def test_a_leap_day_is_a_schedule() -> None:
    assert str(parse_cron("0 0 29 2 *")) == "0 0 29 2 *"


@pytest.mark.parametrize(("text", "real"), [("*/15 * * * *", True), ("0 0-23 * * *", True), ("0 */2 * * *", False)])
def test_only_what_names_no_hour_follows_real_hours(text: str, real: bool) -> None:  # noqa: FBT001  a table's column
    assert parse_cron(text).every_hour is real


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/60 * * * *", "At the start of every hour"),
        ("5,10 * * * *", "At minutes 5 and 10 of every hour"),
        ("5 */2 * * *", "At minute 5 of every 2nd hour"),
        ("*/15 9-17 * * mon-fri", "Every 15 minutes from 09:00 through 17:59 on Monday through Friday"),
        ("0,5 1,3,9 * * *", "At minutes 0 and 5 of hours 1, 3 and 9"),
        ("0 3 * * *", "At 03:00 every day"),
        ("0 3 * 3 *", "At 03:00 every day in March"),
        ("0 0,12 * * 0-0", "At 00:00 and 12:00 on Sunday"),
        ("0 0 * * 0,7", "At 00:00 on Sunday"),
        ("0 0 * 1,3 fri-sun", "At 00:00 on Friday through Sunday in January and March"),
        ("0 0 1,2,3,11,21,22,31 * *", "At 00:00 on the 1st through 3rd, 11th, 21st, 22nd and 31st of the month"),
        ("0 0 1 1 *", "At 00:00 on the 1st of January"),
        ("0 6 1-31 * 1", "At 06:00 every day"),
        ("0 6 13 * fri", "At 06:00 on the 13th of the month and on every Friday"),
        ("0 6 13 3 fri", "At 06:00 on the 13th of the month and on every Friday, only in March"),
        ("0 6 */10 * mon", "At 06:00 on Monday if it is the 1st, 11th, 21st and 31st of the month"),
    ],
)
def test_an_expression_in_plain_words(text: str, words: str) -> None:
    assert parse_cron(text).in_words() == words
