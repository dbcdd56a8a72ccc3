"""Records and the columns they are kept in: the mapping is taken from the record's fields, and written nowhere else.

A field is a column of its name, unless it is renamed; a record within a record is a column for each of its fields. How
a value is kept follows from its type. The functions that convert are made once per table, as text, and are as fast as
ones written by hand.
"""

import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

from lamplighter.kit.json_text import read, text_of
from lamplighter.store.engine import Row, instant, instant_or_none, stamp, stamp_or_none

T = TypeVar("T")


class Column(NamedTuple):
    name: str
    place: str
    """Where its value is in the record: the name of a field, or `field.field`."""
    kept: str
    """The value as it is kept, as text with `{}` for the value in the record."""
    given: str
    """The value in the record, as text with `{}` for the value that is kept."""
    type: str = ""
    """`whole` or `real` where the column is a number."""


class Table(Generic[T]):
    """The columns of one kind of record. Fields that are `left_out` are not kept, and must have a usual value."""

    def __init__(
        self, kind: type[T], *, renamed: Mapping[str, str] | None = None, left_out: Iterable[str] = ()
    ) -> None:
        self._known: dict[str, Any] = {"record_kind": kind, **_CONVERTERS}
        left = frozenset(left_out)
        found = [one for name, of in _types(kind).items() if name not in left for one in self._columns(name, of)]
        called = renamed or {}
        self.columns = {called.get(one.name, one.name): one for one in found}
        self.names = tuple(self.columns)
        self.read: Callable[[Row], T] = self._reader()
        """The record of a row that has all columns."""

    def listed(self, *names: str) -> str:
        """The names of these columns, or of all, for a statement."""
        return ", ".join(names or self.names)

    def given(self, *names: str) -> str:
        """The parameters for these columns, or for all."""
        return ", ".join(f":{name}" for name in names or self.names)

    def assigned(self, *names: str) -> str:
        return ", ".join(f"{name} = :{name}" for name in names)

    def whole(self, *names: str) -> str:
        return self._of_type("whole", names)

    def real(self, *names: str) -> str:
        return self._of_type("real", names)

    def writer(self, *names: str) -> Callable[[T], dict[str, object]]:
        """A function that gives the parameters for these columns, or for all, from a record."""
        parts = []
        for name in names or self.names:
            column = self.columns[name]
            parts.append(f"{name!r}: {column.kept.replace('{}', f'record.{column.place}')}")
        made: Callable[[T], dict[str, object]] = self._function("record", f"{{{', '.join(parts)}}}")
        return made

    def _of_type(self, wanted: str, names: Iterable[str]) -> str:
        return " ".join(name for name in names or self.names if self.columns[name].type == wanted)

    def _reader(self) -> Callable[[Row], T]:
        direct, nested = [], dict[str, list[str]]()
        for name, column in self.columns.items():
            field, _, inner = column.place.partition(".")
            value = column.given.replace("{}", f"row[{name!r}]")
            if inner:
                nested.setdefault(field, []).append(f"{inner}={value}")
            else:
                direct.append(f"{field}={value}")
        direct += [f"{field}=nested_{field}({', '.join(parts)})" for field, parts in nested.items()]
        made: Callable[[Row], T] = self._function("row", f"record_kind({', '.join(direct)})")
        return made

    def _function(self, argument: str, value: str) -> Any:
        known = dict(self._known)
        exec(f"def made({argument}):\n    return {value}", known)  # noqa: S102  only names of fields and columns go in
        return known["made"]

    def _columns(self, name: str, of: Any) -> list[Column]:
        if is_dataclass(of) and isinstance(of, type):
            self._known[f"nested_{name}"] = of
            inner = [(part, one) for part, kind in _types(of).items() for one in self._columns(part, kind)]
            return [one._replace(name=f"{name}_{one.name}", place=f"{name}.{part}") for part, one in inner]
        of, optional = _plain(of)
        kept, given, kind = self._kept(of, optional=optional)
        return [Column(name, name, kept, given, kind)]

    def _kept(self, of: Any, *, optional: bool) -> tuple[str, str, str]:
        if of is datetime:
            perhaps = "_or_none" if optional else ""
            return f"stamp{perhaps}({{}})", f"instant{perhaps}({{}})", "whole"
        if isinstance(of, type) and issubclass(of, Enum):
            self._known[f"enum_{of.__name__}"] = of
            return _perhaps("{}.value", f"enum_{of.__name__}({{}})", optional=optional)
        kept, given, kind = _KEPT[of]
        return (*_perhaps(kept, given, optional=optional)[:2], kind)


def _types(kind: type[Any]) -> dict[str, Any]:
    return {one.name: one.type for one in fields(kind)}


def _plain(of: Any) -> tuple[Any, bool]:
    """The type without `None` and without what is in it, and whether None is allowed."""
    args = get_args(of)
    optional = get_origin(of) in {types.UnionType, Union} and type(None) in args
    if optional:
        [of] = [one for one in args if one is not type(None)]
    return get_origin(of) or of, optional


def _perhaps(kept: str, given: str, *, optional: bool) -> tuple[str, str, str]:
    if not optional or kept == "{}":
        return kept, given, ""
    return f"None if {{}} is None else {kept}", f"None if {{}} is None else {given}", ""


def _list_text(values: tuple[str, ...]) -> str:
    return json.dumps(list(values)) if values else "[]"


def _values_of(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _span(micros: int) -> timedelta:
    return timedelta(microseconds=micros)


_KEPT: dict[Any, tuple[str, str, str]] = {
    str: ("{}", "{}", ""),
    int: ("{}", "{}", "whole"),
    float: ("{}", "{}", "real"),
    bool: ("int({})", "bool({})", "whole"),
    timedelta: ("micros({})", "span({})", "whole"),
    tuple: ("list_text({})", "values_of({})", ""),
    Mapping: ("text_of({})", "read({})", ""),
}
_CONVERTERS: dict[str, Any] = {
    "stamp": stamp,
    "stamp_or_none": stamp_or_none,
    "instant": instant,
    "instant_or_none": instant_or_none,
    "micros": _micros,
    "span": _span,
    "list_text": _list_text,
    "values_of": _values_of,
    "text_of": text_of,
    "read": read,
}
