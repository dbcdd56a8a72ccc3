"""Query strings as values: texts become numbers and booleans where the request's fields ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from starlette.datastructures import QueryParams

from lamplighter.kit.errors import NotFound, UsageError
from lamplighter.kit.shapes import hints_of, key_of
from lamplighter.web.bodies import can_be_kept

_TRUTH = {"true": True, "false": False}


def values_of(kind: type[Any], given: QueryParams) -> dict[str, Any]:
    """What follows the path, by key. A text that is no number stays one, so that reading the request tells of it.

    A key that is repeated has a list of values. Raises UsageError for characters that no value has.
    """
    hints = {key_of(one): hints_of(kind)[one.name] for one in fields(kind)}
    found = {key: [_text(key, one) for one in given.getlist(key)] for key in given}
    return {key: _value(hints.get(key), texts) for key, texts in found.items()}


def _text(key: str, text: str) -> str:
    """Raises UsageError for text that cannot be kept: it has a NUL, or is not Unicode."""
    if not can_be_kept(text):
        raise UsageError(f"`{key}` has characters that no text has.", hint="Send UTF-8 without NUL.")
    return text


def _value(hint: Any, texts: Sequence[str]) -> Any:
    kind = _needed(hint)
    origin = get_origin(kind)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return list(texts)
    values = [_plain(kind, one) for one in texts]
    return values[0] if len(values) == 1 else values


def _needed(hint: Any) -> Any:
    """The type without None."""
    if get_origin(hint) in (Union, UnionType):
        others = [one for one in get_args(hint) if one is not NoneType]
        return others[0] if len(others) == 1 else hint
    return hint


def _plain(kind: Any, text: str) -> Any:
    if kind is bool:
        return _TRUTH.get(text, text)
    if kind in (int, float):
        try:
            return int(text) if kind is int or text.lstrip("-").isdecimal() else float(text)
        except ValueError:
            return text
    return text


def path_values(given: Mapping[str, str]) -> dict[str, str]:
    """Raises NotFound for text that no name has."""
    for name, text in given.items():
        if not can_be_kept(text):
            raise NotFound(f"There is no {name} {text!a}.", hint="Send UTF-8 without NUL.")
    return dict(given)
