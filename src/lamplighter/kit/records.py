"""Frozen dataclasses with a few fields changed, where that is done for every run."""

from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **changes: Any) -> T:
    """As `dataclasses.replace`, several times as fast for a record of many fields.

    For records without slots and without a `__post_init__`. Raises TypeError for a field that it does not have.
    """
    made = object.__new__(type(record))
    fields = made.__dict__
    fields.update(record.__dict__)
    known = len(fields)
    fields.update(changes)
    if len(fields) != known:
        raise TypeError(
            f"{type(record).__name__} has no such field: {', '.join(fields.keys() - record.__dict__.keys())}"
        )
    return made
