"""Cron expressions: parses five fields strictly, and names the field and its limits for each mistake.

cronsim finds the next matching wall time. The parser is ours, because errors must name the mistyped field, and because
a few spellings (`fri-sun`, names in ranges) must be turned into numbers first.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from lamplighter.kit.cron_words import Days, days_of, in_words
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record

LONGEST_TEXT = 100
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# Five years from a fixed day, just before a leap year, so that the verdict on a text does not depend on today's date.
_JUDGED_FROM = datetime(2023, 12, 31, 23, 59)  # noqa: DTZ001  a wall time belongs to no zone
_JUDGED_FOR = timedelta(days=5 * 366)


@record
class _Field:
    name: str
    plural: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def a(self) -> str:
        return f"an {self.name}" if self.name == "hour" else f"a {self.name}"

    @property
    def count(self) -> int:
        """How many values there are; 0 and 7 are the same day of week."""
        return 7 if self.names is _DAYS else self.high - self.low + 1

    @property
    def limits(self) -> str:
        spoken = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.plural} go from {self.low} to {self.high}{spoken}"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", "minutes", 0, 59),
    _Field("hour", "hours", 0, 23),
    _Field("day of month", "days of month", 1, 31),
    _Field("month", "months", 1, 12, _MONTHS),
    _Field("day of week", "days of week", 0, 7, _DAYS),
)


@record
class CronExpression:
    """A valid expression: `text` as written, `plain` for cronsim, and numbers for clock changes and the description."""

    text: str
    plain: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: Days

    @property
    def every_hour(self) -> bool:
        """True if it names no hours: it then follows real hours through a clock change, else the wall clock."""
        return len(self.hours) == 24

    def walls(self, after: datetime) -> Iterator[datetime]:
        """Matching wall times strictly after the wall time `after`, which has no zone."""
        return CronSim(self.plain, after)

    def count_in_day(self, day: date) -> int:
        """How many times it matches on a day without a clock change."""
        sim = _simulator(self.plain)
        return len(self.minutes) * len(self.hours) if day.month in sim.months and sim.match_day(day) else 0

    def in_words(self) -> str:
        return in_words(self.minutes, self.hours, self.days)

    def __str__(self) -> str:
        return self.text


def parse_cron(text: str) -> CronExpression:
    """Raises ValueError with a sentence that names the expression, the field and its limits."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a cron expression has at most {LONGEST_TEXT} characters; this one has {len(text)}")
    fields = _expanded(text).split()
    if len(fields) != len(_FIELDS):
        count = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        raise ValueError(f"`{text}` has {count}; cron takes five: minute, hour, day of month, month, day of week")
    parsed = [_parse_field(field, part, text) for field, part in zip(_FIELDS, fields, strict=True)]
    plain = [terms for terms, _ in parsed]
    minutes, hours, dates, months, weekdays = (frozenset(numbers) for _, numbers in parsed)
    # As in Vixie cron: a day that fits one of the day fields is enough, unless one of them starts with a star.
    either = not (plain[2].startswith("*") or plain[4].startswith("*"))
    days = days_of(dates, months, weekdays, either=either)
    expression = CronExpression(text.strip(), " ".join(plain), minutes, hours, days)
    _refuse_if_never(expression)
    return expression


def _expanded(text: str) -> str:
    word = text.strip().casefold()
    if not word.startswith("@"):
        return text
    if word not in MACROS:
        raise ValueError(f"`{text}` is not a schedule{did_you_mean(word, MACROS)}")
    return MACROS[word]


def _parse_field(field: _Field, part: str, text: str) -> tuple[str, set[int]]:
    """The field with numbers only, and the numbers it stands for."""
    terms: list[str] = []
    numbers: set[int] = set()
    for term in part.split(","):
        found = _parse_term(field, term, text)
        numbers.update(found)
        terms.append(_plain(term, found))
    return ",".join(terms), numbers


def _plain(term: str, found: list[int]) -> str:
    """A term with a star stays as it is: a leading star decides how the two day fields combine."""
    if term.startswith("*"):
        return term
    if "/" in term or len(found) == 1:
        return ",".join(map(str, found))
    return f"{found[0]}-{found[-1]}"


def _parse_term(field: _Field, term: str, text: str) -> list[int]:
    span, slash, step_text = term.partition("/")
    step = _step(field, step_text, text) if slash else 1
    if span == "*":
        return list(range(field.low, field.high + 1, step))
    start_text, dash, end_text = span.partition("-")
    start = _number(field, start_text, text)
    if not dash:
        return list(range(start, field.high + 1, step)) if slash else [start]
    end = _number(field, end_text, text)
    if end == 0 < start and field.names is _DAYS:
        end = 7  # `fri-sun` ends on a Sunday that comes after Friday
    if end < start:
        raise ValueError(f"`{text}` has {field.a} range of {span}; write the smaller one first")
    return list(range(start, end + 1, step))


def _step(field: _Field, step: str, text: str) -> int:
    if not (step.isascii() and step.isdecimal()) or int(step) == 0:
        raise ValueError(f"`{text}` has {field.a} step of {step or 'nothing'}; a step is a number from 1 up")
    if int(step) > field.count:
        raise ValueError(
            f"`{text}` has {field.a} step of {step}; there are {field.count} {field.plural}, so a step goes from 1"
            f" to {field.count}"
        )
    return int(step)


def _number(field: _Field, word: str, text: str) -> int:
    if word.casefold() in field.names:
        return field.names.index(word.casefold()) + field.low
    if not (word.isascii() and word.isdecimal()):
        raise ValueError(f"`{text}` has `{word}` as {field.a}; {field.limits}")
    number = int(word)
    if not field.low <= number <= field.high:
        raise ValueError(f"`{text}` has {field.a} of {word}; {field.limits}")
    return number


def _refuse_if_never(expression: CronExpression) -> None:
    try:
        first = next(iter(expression.walls(_JUDGED_FROM)), None)
    except CronSimError:
        first = None
    if first is None or first - _JUDGED_FROM > _JUDGED_FOR:
        raise ValueError(f"`{expression.text}` never comes within five years; check its day of month and month")


@lru_cache(maxsize=256)
def _simulator(plain: str) -> CronSim:
    return CronSim(plain, _JUDGED_FROM)
