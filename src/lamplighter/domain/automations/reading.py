"""Reads one table of a definition key by key, and collects every problem instead of stopping at the first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from lamplighter.kit.durations import parse_duration
from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.records import record

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")


@record
class Problem:
    """What is wrong with one key, in a sentence."""

    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


@dataclass
class Reader:
    """Reads one table; `place` is its key in the whole tree, `problems` is shared with the readers of its parts.

    A tolerant reader ignores unknown keys, which a newer version may have written.
    """

    table: Mapping[str, Any]
    place: str
    problems: list[Problem] = field(default_factory=list)
    tolerant: bool = False
    _asked: set[str] = field(default_factory=set)

    def key(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def problem(self, name: str, message: str) -> None:
        self.problems.append(Problem(self.key(name), message))

    def has(self, name: str) -> bool:
        self._asked.add(name)
        return self.table.get(name) is not None

    def raw(self, name: str) -> Any:
        self._asked.add(name)
        return self.table.get(name)

    def text(self, name: str, *, longest: int | None = None) -> str | None:
        """A text, None if absent; a blank one is a problem."""
        value = self._typed(name, str, "a text in quotes")
        if value is None:
            return None
        if not value.strip():
            self.problem(name, "is blank")
        elif "\0" in value:
            self.problem(name, "holds a NUL character")
        elif any("\ud800" <= one <= "\udfff" for one in value):
            self.problem(name, "holds half a character, which is no text")
        elif longest is not None and len(value.encode()) > longest:
            self.problem(name, f"has {len(value.encode())} bytes; at most {longest} are allowed")
        return value

    def flag(self, name: str, default: bool) -> bool:  # noqa: FBT001  the value itself is asked for
        value = self._typed(name, bool, "true or false")
        return default if value is None else value

    def integer(self, name: str, low: int, high: int) -> int | None:
        value = self._typed(name, int, "a whole number")
        if value is not None and not low <= value <= high:
            self.problem(name, f"is {value}; it goes from {low} to {high}")
            return None
        return value

    def number(self, name: str) -> float | None:
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem(name, f"is {_kind(value)}; it takes a number")
            return None
        if not 0 < value < float("inf"):
            self.problem(name, f"is {value}; it must be above 0")
            return None
        return float(value)

    def duration(self, name: str, *, zero: bool = False) -> timedelta | None:
        value = self._typed(name, str, "a duration in quotes, such as `90s`")
        if value is None:
            return None
        span = self.parsed(name, value, parse_duration)
        if span is not None and (span < timedelta(0) or (span == timedelta(0) and not zero)):
            self.problem(name, f"is `{value}`; it must be longer than nothing")
            return None
        return span

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        value = self._typed(name, str, "a text in quotes")
        return None if value is None else self.chosen(name, value, kind)

    def chosen(self, name: str, value: str, kind: type[Choice]) -> Choice | None:
        known = [one.value for one in kind]
        if value in known:
            return kind(value)
        self.problem(name, f"`{value}` is not one of {_listed(known)}{did_you_mean(value, known)}")
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.raw(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one.strip() for one in value):
            self.problem(name, 'takes a list of texts, such as `["one", "two"]`')
            return ()
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self._typed(name, dict, "a table")
        return {} if value is None else {str(key): one for key, one in value.items()}

    def part(self, name: str) -> "Reader | None":
        value = self._typed(name, dict, "a table")
        return None if value is None else Reader(value, self.key(name), self.problems, tolerant=self.tolerant)

    def parts(self, name: str) -> "list[Reader]":
        value = self.raw(name)
        if value is None:
            return []
        if not isinstance(value, list | tuple) or not all(isinstance(one, Mapping) for one in value):
            self.problem(name, "takes a list of tables")
            return []
        return [
            Reader(one, f"{self.key(name)}[{place}]", self.problems, tolerant=self.tolerant)
            for place, one in enumerate(value)
        ]

    def parsed(self, name: str, value: str, parse: Callable[[str], Value]) -> Value | None:
        """The result of `parse`; its ValueError, whose message describes the value, becomes a problem."""
        try:
            return parse(value)
        except ValueError as error:
            self.problem(name, str(error))
            return None

    def refuse_unknown(self, known: Iterable[str] = (), reasons: Mapping[str, str] | None = None) -> None:
        """Report every key that was not read as a problem, with its reason from `reasons` or the nearest known name."""
        if self.tolerant:
            return
        names = self._asked | set(known)
        for name in self.table:
            if name in names or self.table[name] is None:
                continue
            reason = (reasons or {}).get(str(name))
            self.problem(str(name) or '""', reason or f"is not a setting{did_you_mean(str(name), names)}")

    def _typed(self, name: str, kind: type[Value], takes: str) -> Value | None:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.problem(name, f"is {_kind(value)}; it takes {takes}")
            return None
        return value


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return f"the number {value}"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
