"""Fast frozen dataclasses: made and changed several times as fast, and defined three times as fast.

The standard decorator compiles six methods for each class: most of what a command costs before it does anything.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[T]) -> type[T]:
    """As `dataclass(frozen=True)`: two are equal if they are of one class and all their fields are.

    Not for classes with slots, with a `__post_init__`, with cached properties, or with a base class that is another
    kind of dataclass.
    """
    written, kind.__doc__ = kind.__doc__, kind.__doc__ or kind.__name__  # without one its signature is worked out
    made = dataclass(init=False, repr=False, eq=False)(kind)
    made.__doc__ = written
    made.__init__ = _init(made)  # type: ignore[method-assign]  # `init=False` left it out
    for name, method in _SHARED.items():
        if name not in kind.__dict__:
            setattr(made, name, method)
    return made


def _is_equal(self: Any, other: object) -> bool:
    return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(map(self.__dict__.__getitem__, self.__dataclass_fields__)))


def _told(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{key}={value!r}' for key, value in self.__dict__.items())})"


def _refuse_set(_self: Any, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {
    "__eq__": _is_equal, "__hash__": _hash, "__repr__": _told,
    "__setattr__": _refuse_set, "__delattr__": _refuse_delete,
}  # fmt: skip


def _init(kind: type[Any]) -> Any:
    takes, sets = [], []
    known: dict[str, Any] = {"MISSING": MISSING}
    for one in fields(kind):
        value = one.name
        if one.default_factory is not MISSING:
            known[f"make_{one.name}"] = one.default_factory
            takes.append(f"{one.name}=MISSING")
            value = f"make_{one.name}() if {one.name} is MISSING else {one.name}"
        elif one.default is not MISSING:
            known[f"usual_{one.name}"] = one.default
            takes.append(f"{one.name}=usual_{one.name}")
        else:
            takes.append(one.name)
        sets.append(f"{one.name}={value}")
    text = f"def __init__(self, {', '.join(takes)}):\n    self.__dict__.update({', '.join(sets)})"
    exec(text, known)  # noqa: S102  only names of fields go in; `dataclass` does the same
    return known["__init__"]


def changed(record: T, **changes: Any) -> T:
    """As `dataclasses.replace`, several times as fast for a record with many fields.

    For records without slots and without a `__post_init__`. Raises TypeError for a field that it does not have.
    """
    before = record.__dict__
    after = before | changes
    if len(after) != len(before):
        unknown = ", ".join(changes.keys() - before.keys())
        raise TypeError(f"{type(record).__name__} has no such field: {unknown}")
    made = object.__new__(type(record))
    object.__setattr__(made, "__dict__", after)
    return made
