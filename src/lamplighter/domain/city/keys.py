"""Keys of configuration files: the shape, description and limits of each, stored in the metadata of its field.

A field of a section class with such metadata is a key of the file. Decoding, suggestions, the reference page and the
tests all use its name, shape, default and description, so that a new key is one line in the model.
"""

import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from lamplighter.kit.records import record

Check = Callable[[Any], str | None]
_KEY = "key"


class Shape(StrEnum):
    """The shape of a value in the file."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    SWITCH = "true or false"
    DURATION = "duration"
    TEXTS = "list of texts"
    PAIRS = "table of texts"
    COUNTS = "table of whole numbers"
    TABLE = "table"
    ROWS = "list of tables"
    NAMED = "table of named tables"


@record
class Key:
    name: str
    shape: Shape
    doc: str
    check: Check | None = None
    holds: type | None = None
    unused: bool = False
    required: bool = False
    default: object = None


@lru_cache
def keys_of(section: type) -> Mapping[str, Key]:
    """Every key of a section by its name in the file, in the order of the model."""
    keys = (_key_of(field) for field in dataclasses.fields(section) if _KEY in field.metadata)
    return {key.name: key for key in keys}


def attribute(key: str) -> str:
    """The name of the field that holds `key`: without leading underscores, as the key `_replace` has one."""
    return key.lstrip("_")


def text(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.TEXT, doc, check)


def whole(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.WHOLE, doc, check)


def number(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.NUMBER, doc, check)


def switch(doc: str, name: str = "") -> dict[str, Key]:
    return {_KEY: Key(name, Shape.SWITCH, doc)}


def span(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.DURATION, doc, check)


def texts(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.TEXTS, doc, check)


def pairs(doc: str) -> dict[str, Key]:
    return _made(Shape.PAIRS, doc)


def counts(doc: str, check: Check | None = None) -> dict[str, Key]:
    return _made(Shape.COUNTS, doc, check)


def table(doc: str, holds: type, *, unused: bool = False) -> dict[str, Key]:
    return {_KEY: Key("", Shape.TABLE, doc, holds=holds, unused=unused)}


def rows(doc: str, holds: type) -> dict[str, Key]:
    return {_KEY: Key("", Shape.ROWS, doc, holds=holds)}


def named(doc: str, holds: type) -> dict[str, Key]:
    return {_KEY: Key("", Shape.NAMED, doc, holds=holds)}


def unused(doc: str) -> dict[str, Key]:
    """A key that Gas City files have and Lamplighter does not use: accepted, with a remark."""
    return {_KEY: Key("", Shape.TEXT, doc, unused=True)}


def _made(shape: Shape, doc: str, check: Check | None = None) -> dict[str, Key]:
    return {_KEY: Key("", shape, doc, check)}


def _key_of(field: "dataclasses.Field[Any]") -> Key:
    key: Key = field.metadata[_KEY]
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    default = None
    if field.default is not dataclasses.MISSING:
        default = field.default
    elif field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    return dataclasses.replace(key, name=key.name or field.name, required=required, default=default)
