"""Dataclasses as JSON: how requests are read, how answers are written, and the schema of both.

A field's key in JSON is its name, unless `given(key=…)` says otherwise. Supported are text, numbers, booleans, times,
days, enumerations of text, mappings, sequences, dataclasses, unions with None, and Any.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from lamplighter.kit.clock import rfc3339
from lamplighter.kit.errors import Misfit, Place, UsageError

T = TypeVar("T")
LARGEST = 2**63 - 1
"""The largest whole number that databases can hold."""
_PLAIN = (str, int, float, bool, NoneType)


def given(  # noqa: PLR0913  each is one fact about a field
    help_text: str,
    *,
    default: Any = MISSING,
    key: str | None = None,
    metavar: str | None = None,
    positional: bool = False,
    least: float | None = None,
    most: float | None = None,
    whole: bool = False,
    names: str | None = None,
    rest: bool = False,
) -> Any:
    """A field of a request or an answer: what it means, its key in JSON, and how a command takes it.

    `positional`: an argument of the command instead of an option. `whole`: a mapping whose keys stand beside the other
    fields in JSON; reading takes every key that no other field takes. `least` and `most` bound a number.
    `names`: the field names one of these things (`run`, `agent`, …), by whatever form people type for its id.
    `rest`: a text that takes all words that are left on the command's line, so that it needs no quotes.
    """
    facts = {"help": help_text, "key": key, "metavar": metavar, "positional": positional, "least": least, "most": most}
    metadata = {**facts, "whole": whole, "names": names, "rest": rest}
    if isinstance(default, (dict, list)):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def key_of(one: "Field[Any]") -> str:
    return one.metadata.get("key") or one.name


def hints_of(kind: Any) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by name."""
    return _hints(kind)


@lru_cache(maxsize=512)
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def to_json(value: Any) -> Any:  # noqa: C901, PLR0911  a table of types
    """The value as what `json.dumps` takes."""
    if value is None or type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _written_record(value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (Sequence, frozenset, set)):
        return [to_json(one) for one in value]
    return value


def _written_record(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    written: dict[str, Any] = {}
    for name, key in _keys(kind):
        one = to_json(getattr(value, name))
        if key is None:
            written |= one
        else:
            written[key] = one
    return written


@lru_cache(maxsize=512)
def _keys(kind: type[Any]) -> list[tuple[str, str | None]]:
    """The fields' names with their keys; None for a field whose own keys stand in its place."""
    return [(one.name, None if one.metadata.get("whole") else key_of(one)) for one in fields(kind)]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _Wrong(Exception):
    pass


class _Reading(NamedTuple):
    """How a value is read, and the problems found so far."""

    strict: bool
    filled: bool
    problems: list[Misfit]

    def note(self, place: Place, what: str) -> None:
        self.problems.append(Misfit(place, f"{_named(place)} {what}"))

    def trial(self) -> "_Reading":
        """The same with no problem so far."""
        return self._replace(problems=[])


def from_json(kind: type[T], data: Any, *, strict: bool = True, filled: bool = False) -> T:
    """A value of `kind` from parsed JSON. Raises UsageError with every problem, also as `misfits`.

    `strict` refuses unknown keys. `filled` takes an empty text for a missing one where a text is needed, as people and
    models pass it. Null counts as left out for a field that has a default and cannot be None.
    """
    reading = _Reading(strict, filled, [])
    made = _read(kind, data, (), reading)
    if reading.problems:
        told = "; ".join(one.told for one in reading.problems)
        wrong = UsageError(f"Nothing was done: {told}.", hint="Mend the arguments, call again.")
        wrong.misfits = tuple(reading.problems)
        raise wrong
    return made  # type: ignore[no-any-return]  # `_read` returns a `kind` if there is no problem


def _read(kind: Any, data: Any, place: Place, reading: _Reading) -> Any:  # noqa: PLR0911  a table of types
    kind = _plain_type(kind)
    if kind is Any:
        return data
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _read_union(get_args(kind), data, place, reading)
    if is_dataclass(kind):
        return _read_record(kind, data, place, reading)
    if origin is not None and issubclass(origin, Mapping):
        return _read_mapping(kind, data, place, reading)
    if origin is not None and issubclass(origin, Sequence):
        return _read_sequence(kind, origin, data, place, reading)
    try:
        return _read_plain(kind, data)
    except _Wrong as wrong:
        reading.note(place, f"must be {wrong}")
        return None


def _named(place: Place) -> str:
    """The place in words, such as `triggers[0].gate`."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)
    return f"`{text.removeprefix('.')}`" if place else "it"


def _plain_type(kind: Any) -> Any:
    """The type behind a `NewType`."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    return kind


def _read_union(kinds: tuple[Any, ...], data: Any, place: Place, reading: _Reading) -> Any:
    if data is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    for kind in others[:-1]:
        trial = reading.trial()
        made = _read(kind, data, place, trial)
        if not trial.problems:
            return made
    return _read(others[-1], data, place, reading)


def _read_record(kind: Any, data: Any, place: Place, reading: _Reading) -> Any:
    problems = reading.problems
    if not isinstance(data, Mapping):
        reading.note(place, "must be an object")
        return None
    hints, values, left = hints_of(kind), {}, dict(data)
    whole: Field[Any] | None = None
    before = len(problems)
    for one in fields(kind):
        if one.metadata.get("whole"):
            whole = one
            continue
        key = key_of(one)
        path = (*place, key)
        needed = one.default is MISSING and one.default_factory is MISSING
        value = left.pop(key, MISSING)
        if value is MISSING or (value == "" and needed and reading.filled):
            if needed:
                reading.note(path, "is missing")
            continue
        hint = hints[one.name]
        if value is None and not needed and not _takes_none(hint):
            continue
        values[one.name] = _bounded(one, _read(hint, value, path, reading), path, reading)
    if whole is not None:
        values[whole.name], left = left, {}
    if reading.strict and left:
        known = ", ".join(key for _, key in _keys(kind) if key)
        problems.append(Misfit((*place, min(left)), f"`{min(left)}` is not known; known are {known}"))
    return kind(**values) if len(problems) == before else None


def _takes_none(hint: Any) -> bool:
    return hint is Any or (get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint))


def _bounded(one: "Field[Any]", value: Any, path: Place, reading: _Reading) -> Any:
    least, most = one.metadata.get("least"), one.metadata.get("most")
    if not isinstance(value, (int, float)):
        return value
    if not ((least is None or value >= least) and (most is None or value <= most)):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        if least is None:
            bounds = f"of at most {most}"
        reading.note(path, f"must be a {'whole ' if isinstance(value, int) else ''}number {bounds}")
    return value


def _read_mapping(kind: Any, data: Any, place: Place, reading: _Reading) -> Any:
    if not isinstance(data, Mapping):
        reading.note(place, "must be an object")
        return {}
    of = (get_args(kind) or (str, Any))[1]
    texts = of is str or set(get_args(of)) == {str, NoneType}
    trial = reading.trial()
    made = {str(key): _read(of, one, (*place, str(key)), trial) for key, one in data.items()}
    if trial.problems:
        told = Misfit(place, f"{_named(place)} must be an object of texts")
        reading.problems.extend([told] if texts else trial.problems)
    return made


def _read_sequence(kind: Any, origin: Any, data: Any, place: Place, reading: _Reading) -> Any:
    of = (get_args(kind) or (Any,))[0]
    if of is str and isinstance(data, str):
        data = [data]  # a single text counts as a list of one
    if not isinstance(data, (list, tuple)):
        reading.note(place, f"must be a list{' of texts' if of is str else ''}")
        return ()
    trial = reading.trial()
    made = [_read(of, one, (*place, number), trial) for number, one in enumerate(data)]
    if trial.problems:
        told = Misfit(place, f"{_named(place)} must be a list of texts")
        reading.problems.extend([told] if of is str else trial.problems)
    return made if origin is list else tuple(made)


def _read_plain(kind: Any, data: Any) -> Any:
    if issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise _Wrong(f"one of {', '.join(str(one.value) for one in kind)}") from None
    if kind is datetime:
        return _read_time(data)
    if kind is date:
        return _read_day(data)
    if kind in (float, timedelta):
        return _read_number(kind, data)
    if issubclass(kind, PurePath) and isinstance(data, str):
        return kind(data)
    if isinstance(data, kind) and (kind is bool or not isinstance(data, bool)):
        if kind is int and abs(data) > LARGEST:
            raise _Wrong("a whole number that is not as large")
        return data
    words = {str: "text", int: "a whole number", bool: "true or false"}
    raise _Wrong(words.get(kind, f"a {kind.__name__}"))


def _read_time(data: Any) -> datetime:
    try:
        found = datetime.fromisoformat(data)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise _Wrong("a time such as 2026-03-02T09:00:00Z")
    return found


def _read_day(data: Any) -> date:
    try:
        return date.fromisoformat(data)
    except (TypeError, ValueError):
        raise _Wrong("a day such as 2026-03-02") from None


def _read_number(kind: Any, data: Any) -> Any:
    """A finite number, or so many seconds."""
    word = "a number of seconds" if kind is timedelta else "a number"
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        raise _Wrong(word)
    try:
        return timedelta(seconds=data) if kind is timedelta else _finite(float(data))
    except (ValueError, OverflowError):
        raise _Wrong(word) from None


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return number


# ── describing ────────────────────────────────────────────────────────────────────────────────────────────────────


_ANY_OBJECT = {"type": "object", "additionalProperties": True}


def schema_of(kind: Any) -> dict[str, Any]:  # noqa: PLR0911  a table of types
    """The JSON Schema of a type; that a value may be null is left out."""
    kind = _plain_type(kind)
    origin = get_origin(kind)
    if kind is Any:
        return {}
    if origin in (Union, UnionType):
        others = [schema_of(one) for one in get_args(kind) if one is not NoneType]
        return others[0] if len(others) == 1 else {"anyOf": others}
    if is_dataclass(kind):
        return _schema_of_record(kind)
    if origin is not None and issubclass(origin, Mapping):
        return dict(_ANY_OBJECT)
    if origin is not None and issubclass(origin, Sequence):
        items = schema_of((get_args(kind) or (Any,))[0])
        return {"type": "array", "items": {"type": "object"} if items == _ANY_OBJECT else items}
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [one.value for one in kind]}
    names = {str: "string", bool: "boolean", int: "integer", float: "number", timedelta: "number", NoneType: "null"}
    return {"type": names.get(kind, "string")}


def _schema_of_record(kind: Any) -> dict[str, Any]:
    hints = hints_of(kind)
    properties, required = {}, []
    for one in fields(kind):
        if one.metadata.get("whole"):
            continue
        found = schema_of(hints[one.name])
        if one.metadata.get("least") is not None:
            found["minimum"] = one.metadata["least"]
        if one.metadata.get("help"):
            found["description"] = one.metadata["help"]
        properties[key_of(one)] = found
        if one.default is MISSING and one.default_factory is MISSING:
            required.append(key_of(one))
    schema = {"type": "object", "properties": properties, "required": required}
    whole = any(one.metadata.get("whole") for one in fields(kind))
    return schema | {"additionalProperties": True} if whole else schema
