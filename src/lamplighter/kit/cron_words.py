"""A cron expression in plain words, built from the numbers it stands for: which days, and which times of them."""

from collections.abc import Callable, Iterable
from datetime import date

from lamplighter.kit.records import record

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_HOURS = frozenset(range(24))
_MINUTES = frozenset(range(60))
# Up to this many times of day are listed one by one; more are described by their minutes and hours.
_LISTED_TIMES = 4
# A row of at least this many neighbouring numbers is described by its first and last.
_SHORTEST_ROW = 3
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


@record
class Days:
    """The days a schedule fires on. A part that is None excludes no day.

    With both parts set, `either` decides: a day that fits one of them (True), or only one that fits both (False).
    """

    of_month: frozenset[int] | None = None
    of_week: frozenset[int] | None = None
    months: frozenset[int] | None = None
    either: bool = False

    def include(self, day: date) -> bool:
        if self.months is not None and day.month not in self.months:
            return False
        fits_month = self.of_month is None or day.day in self.of_month
        fits_week = self.of_week is None or day.isoweekday() % 7 in self.of_week
        both_set = self.of_month is not None and self.of_week is not None
        return fits_month or fits_week if both_set and self.either else fits_month and fits_week


def days_of(of_month: Iterable[int], months: Iterable[int], of_week: Iterable[int], *, either: bool) -> Days:
    """Days from the numbers of the cron fields (7 is Sunday too); a field that names every value excludes nothing."""
    of_month, months, of_week = frozenset(of_month), frozenset(months), frozenset(day % 7 for day in of_week)
    every_date, every_weekday = len(of_month) == 31, len(of_week) == 7
    named_months = None if len(months) == 12 else months
    if either and (every_date or every_weekday):
        return Days(months=named_months)
    return Days(None if every_date else of_month, None if every_weekday else of_week, named_months, either)


def in_words(minutes: frozenset[int], hours: frozenset[int], days: Days) -> str:
    few_times = len(minutes) * len(hours) <= _LISTED_TIMES
    return f"{_times(minutes, hours)} {day_words(days) or ('every day' if few_times else '')}".rstrip()


def day_words(days: Days) -> str:
    """The days in words; empty for every day of the year."""
    dates = None if days.of_month is None else _listed(days.of_month, _ordinal)
    months = None if days.months is None else _listed(days.months, lambda month: MONTH_NAMES[month - 1])
    only = f", only in {months}" if months else ""
    match dates, _weekdays(days.of_week):
        case None, None:
            return f"every day in {months}" if months else ""
        case None, weekdays:
            return f"on {weekdays}" + (f" in {months}" if months else "")
        case _, None:
            return f"on the {dates} of {months or 'the month'}"
        case _, weekdays if days.either:
            return f"on the {dates} of the month and on every {weekdays}{only}"
        case _, weekdays:
            return f"on {weekdays} if it is the {dates} of the month{only}"


def _weekdays(found: frozenset[int] | None) -> str | None:
    """Days of the week in words, from Monday to Sunday."""
    return None if found is None else _listed({day or 7 for day in found}, lambda day: DAY_NAMES[day % 7])


def _times(minutes: frozenset[int], hours: frozenset[int]) -> str:
    if hours == _HOURS:
        if minutes == {0}:
            return "At the start of every hour"
        return _minutes(minutes) if _step(minutes, _MINUTES) else f"{_minutes(minutes)} of every hour"
    if len(minutes) * len(hours) <= _LISTED_TIMES:
        return "At " + _joined([f"{hour:02}:{minute:02}" for hour in sorted(hours) for minute in sorted(minutes)])
    if _step(minutes, _MINUTES) and len(hours) == max(hours) - min(hours) + 1:
        return f"{_minutes(minutes)} from {min(hours):02}:00 through {max(hours):02}:59"
    return f"{_minutes(minutes)} of {_hours(hours)}"


def _minutes(minutes: frozenset[int]) -> str:
    step = _step(minutes, _MINUTES)
    if step is not None:
        return "Every minute" if step == 1 else f"Every {step} minutes"
    return f"At minute{'' if len(minutes) == 1 else 's'} {_listed(minutes, str)}"


def _hours(hours: frozenset[int]) -> str:
    step = _step(hours, _HOURS)
    if step is not None:
        return f"every {_ordinal(step)} hour"
    return f"hour{'' if len(hours) == 1 else 's'} {_listed(hours, str)}"


def _step(found: frozenset[int], every: frozenset[int]) -> int | None:
    """The step, if the numbers start at 0 and are evenly spaced over the whole range; else None."""
    if len(found) < 2 or len(every) % len(found):
        return None
    step = len(every) // len(found)
    return step if found == set(range(0, len(every), step)) else None


def _listed(numbers: Iterable[int], name: Callable[[int], str]) -> str:
    """The numbers in order, by name; a row of neighbours as its first `through` its last."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    told: list[str] = []
    for row in rows:
        is_long = len(row) >= _SHORTEST_ROW
        told += [f"{name(row[0])} through {name(row[-1])}"] if is_long else [name(number) for number in row]
    return _joined(told)


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"
