"""The filter of runs as people write it: `state:failed automation:nightly* since:2d -reason:budget`.

A term is a field, a colon and a value; `-` before it turns it round. A value may be a list (`state:failed,timed_out`),
may end in `*` where names are compared, and stands in double quotes if it has spaces or commas. All terms must hold; of
several with the same field one must.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lamplighter.domain.runs.model import Run, RunState
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.errors import Misfit, UsageError
from lamplighter.kit.nearest import did_you_mean

LONGEST = 2000
MOST_TERMS = 40
_TERM = re.compile(r'\s*(?P<not>-?)(?P<field>[A-Za-z_][\w.]*):(?P<values>(?:"[^"]*"|[^\s"])*)(?=\s|$)')
_DOLLARS = re.compile(r"\d{1,9}(\.\d{1,9})?")
_VALUE = re.compile(r'"[^"]*"|[^,"]+')


class Field(StrEnum):
    STATE = "state"
    AUTOMATION = "automation"
    REASON = "reason"
    RIG = "rig"
    TRIGGER = "trigger"
    ACTION = "action"
    CONTINUED = "continued"
    """`yes` if another run goes on with its work: its question was answered, or it was told something."""
    CLAIMED = "claimed"
    """Who has claimed it; `me` is whoever asks."""


@dataclass(frozen=True)
class PayloadField:
    """What the payload that fired a run has at a declared path, such as `repo` or `data.customer`."""

    path: str

    @property
    def value(self) -> str:
        return PAYLOAD + self.path


PAYLOAD = "payload."
TIMES = ("since", "until")
COST = "cost"
EVERY = (*(one.value for one in Field), COST, *TIMES)
ME = "me"
ACTIONS = ("exec", "formula", "agent")
YES_OR_NO = ("yes", "no")


class QueryWrong(UsageError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"The query is not right: {what}.".replace("?.", "?"),
            hint="Such as `state:failed automation:nightly* since:2d -reason:budget`.",
        )
        self.misfits = [Misfit(("q",), what)]


@dataclass(frozen=True, order=True)
class Word:
    """A value to compare with: all of it, or only its beginning."""

    text: str
    is_prefix: bool = False

    def fits(self, value: str) -> bool:
        return value.startswith(self.text) if self.is_prefix else value == self.text


@dataclass(frozen=True)
class Condition:
    """One of the words must fit the field, or none of them if it is `negated`."""

    field: "Field | PayloadField"
    words: tuple[Word, ...]
    negated: bool = False

    def holds(self, value: str) -> bool:
        return any(word.fits(value) for word in self.words) is not self.negated


class Sign(StrEnum):
    """How an amount is compared; those of two letters are read first."""

    AT_LEAST = ">="
    AT_MOST = "<="
    MORE = ">"
    LESS = "<"


@dataclass(frozen=True)
class CostBound:
    """A run that told no cost has cost nothing."""

    sign: Sign
    dollars: float

    def holds(self, cost: float | None) -> bool:
        is_less, is_more = (cost or 0.0) < self.dollars, (cost or 0.0) > self.dollars
        return {Sign.LESS: is_less, Sign.MORE: is_more, Sign.AT_LEAST: not is_less, Sign.AT_MOST: not is_more}[
            self.sign
        ]


@dataclass(frozen=True)
class RunQuery:
    """`since` and `until` bound the time a run was made: from the first on, before the second."""

    conditions: tuple[Condition, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    costs: tuple[CostBound, ...] = ()
    """Each must hold."""


def value_of(run: Run, field: Field) -> str:
    """An absent value is an empty text."""
    values: Mapping[Field, str] = {
        Field.STATE: run.state.value,
        Field.AUTOMATION: run.automation,
        Field.REASON: run.reason,
        Field.RIG: run.rig or "",
        Field.TRIGGER: run.trigger_kind,
        Field.ACTION: run.action,
        Field.CONTINUED: "no" if run.continued_by is None else "yes",
        Field.CLAIMED: run.assigned_to or "",
    }
    return values[field]


def passes(query: RunQuery, run: Run, payload: Iterable[tuple[str, str]] = ()) -> bool:
    """What the database is asked, said once more in plain words. `payload` has the run's paths with their values."""
    known = list(payload)

    def holds(one: Condition) -> bool:
        if isinstance(one.field, Field):
            return one.holds(value_of(run, one.field))
        values = [value for path, value in known if path == one.field.path]
        return any(word.fits(value) for word in one.words for value in values) is not one.negated

    return (
        (query.since is None or run.created_at >= query.since)
        and (query.until is None or run.created_at < query.until)
        and all(one.holds(run.cost) for one in query.costs)
        and all(map(holds, query.conditions))
    )


def parse(text: str, now: datetime, paths: Iterable[str] = (), me: str = ME) -> RunQuery:
    """Raises QueryWrong for the first thing that is not understood. `paths` are those by which payloads are found,
    `me` is the name of whoever asks.
    """
    known = sorted(set(paths))
    if len(text) > LONGEST:
        raise QueryWrong(f"it has more than {LONGEST} characters")
    words: dict[tuple[Field | PayloadField, bool], list[Word]] = {}
    times: dict[str, datetime] = {}
    costs: list[CostBound] = []
    for negated, field, values in _terms(text):
        if field in TIMES:
            if negated:
                raise QueryWrong(f"`-{field}` says nothing; use `{'until' if field == 'since' else 'since'}`")
            if field in times:
                raise QueryWrong(f"`{field}` stands twice")
            times[field] = _time(field, values, now)
        elif field == COST:
            costs.append(_cost(values, negated=negated))
        else:
            meant = _field(field, known)
            said = _words(meant, values)
            said = [Word(me) if meant is Field.CLAIMED and one == Word(ME) else one for one in said]
            words.setdefault((meant, negated), []).extend(said)
    conditions = [Condition(field, tuple(found), negated) for (field, negated), found in words.items()]
    return RunQuery(tuple(conditions), times.get("since"), times.get("until"), tuple(costs))


def _terms(text: str) -> Iterable[tuple[bool, str, str]]:
    position, number = 0, 0
    text = text.rstrip()
    while position < len(text):
        found = _TERM.match(text, position)
        if found is None:
            raise QueryWrong(f"`{text[position:].strip()[:60]}` does not begin with a field and a colon")
        number += 1
        if number > MOST_TERMS:
            raise QueryWrong(f"it has more than {MOST_TERMS} terms")
        yield bool(found["not"]), found["field"], found["values"]
        position = found.end()


def _field(name: str, paths: list[str]) -> Field | PayloadField:
    if name.startswith(PAYLOAD):
        path = name.removeprefix(PAYLOAD)
        if path in paths:
            return PayloadField(path)
        near = did_you_mean(path, paths) or (f"; there are {', '.join(paths)}" if paths else "")
        raise QueryWrong(f"`{name}` cannot be searched: no connection declares `{path}`{near}")
    try:
        return Field(name)
    except ValueError:
        known = did_you_mean(name, EVERY) or f"; there are {', '.join(EVERY)}"
        raise QueryWrong(f"`{name}` is not a field{known}") from None


def _words(field: Field | PayloadField, text: str) -> list[Word]:
    found = [one.strip('"') if one[0] == '"' else one for one in _VALUE.findall(text)]
    if not found or _VALUE.sub("", text).strip(",") or text.startswith(",") or text.endswith(",") or ",," in text:
        raise QueryWrong(f"`{field.value}:{text[:60]}` has no value, or an empty one")
    return [_word(field, one) for one in found]


def _word(field: Field | PayloadField, text: str) -> Word:
    known: Mapping[Field, Iterable[str]] = {
        Field.STATE: [one.value for one in RunState], Field.ACTION: ACTIONS, Field.CONTINUED: YES_OR_NO,
    }  # fmt: skip
    if isinstance(field, Field) and field in known:
        if text not in known[field]:
            near = did_you_mean(text, known[field]) or f"; there are {', '.join(known[field])}"
            raise QueryWrong(f"`{text[:60]}` is not one of {field.value}{near}")
        return Word(text)
    is_prefix = text.endswith("*")
    name = text[:-1] if is_prefix else text
    if "*" in name:
        raise QueryWrong(f"`{text[:60]}` has a `*` that is not at its end")
    return Word(name, is_prefix)


def _cost(text: str, *, negated: bool) -> CostBound:
    """Raises QueryWrong."""
    sign = next((one for one in Sign if text.startswith(one)), None)
    told = text.removeprefix(sign or "").removeprefix("$")
    if negated:
        raise QueryWrong("`-cost` says nothing; turn its sign round")
    if sign is None or not _DOLLARS.fullmatch(told):
        raise QueryWrong(f"`cost:{text[:60]}` has no sign and amount, such as >1 or <=0.25")
    return CostBound(sign, float(told))


def _time(field: str, text: str, now: datetime) -> datetime:
    """A duration ago, or a time."""
    plain = text.strip('"')
    try:
        return now - parse_duration(plain)
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(plain)
        return found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)
    except (ValueError, OverflowError):
        raise QueryWrong(f"`{field}:{text[:60]}` is neither a duration nor a time, such as 2d or 2026-11-15") from None
