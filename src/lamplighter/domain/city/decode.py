"""Decodes a parsed file into checked tables, and merged tables into the city; problems are collected, not raised."""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar, assert_never

from lamplighter.domain.city import model
from lamplighter.domain.city.keys import Key, Shape, attribute, keys_of
from lamplighter.domain.city.limits import env_name, looks_secret
from lamplighter.domain.city.tree import Findings, Leaf, Place, Table
from lamplighter.kit.durations import parse_duration
from lamplighter.kit.nearest import did_you_mean

T = TypeVar("T")
_BAD = object()


def read(section: type, tree: Mapping[str, Any], place: Place, found: Findings) -> Table:
    """Check the shape of one table; wrong keys are reported and left out, so that the rest can still be checked."""
    known = keys_of(section)
    leaves: dict[str, Leaf] = {}
    for name, raw in tree.items():
        at = place / name
        key = known.get(name)
        if key is None:
            found.wrong(at, _unknown(name, section, known))
            continue
        if key.unused:
            found.remark(at, "is accepted and not used")
        value = read_value(key, raw, at, found)
        if value is not _BAD:
            leaves[name] = Leaf(value, at)
    return Table(section, place, leaves)


def read_value(key: Key, raw: Any, at: Place, found: Findings) -> Any:
    """The decoded value of one key; after a problem, a sentinel for which `is_bad` is true."""
    value = _shaped(key, raw, at, found)
    if value is not _BAD and key.check is not None and (wrong := key.check(value)):
        found.wrong(at, wrong)
        return _BAD
    return value


def is_bad(value: object) -> bool:
    return value is _BAD


def build(table: Table, found: Findings) -> Any:
    """The section that a merged table declares, or None when a required key is missing."""
    given: dict[str, Any] = {}
    for name, leaf in table.leaves.items():
        given[attribute(name)] = _built(leaf.value, found)
    required = [key.name for key in keys_of(table.section).values() if key.required]
    for name in required:
        if name not in table.leaves and not found.about(table.place / name):
            found.wrong(table.place / name, "is missing; it must be set")
    whole = all(given.get(attribute(name)) is not None for name in required)
    return table.section(**given) if whole else None


def city_of(table: Table, found: Findings) -> model.City | None:
    built = build(table, found)
    return built if isinstance(built, model.City) else None


def _built(value: Any, found: Findings) -> Any:
    if isinstance(value, Table):
        return build(value, found)
    if isinstance(value, list):
        return tuple(row for row in (build(row, found) for row in value) if row is not None)
    if isinstance(value, dict) and any(isinstance(row, Table) for row in value.values()):
        rows = {name: build(row, found) for name, row in value.items()}
        return {name: row for name, row in rows.items() if row is not None}
    return value


def _shaped(key: Key, raw: Any, at: Place, found: Findings) -> Any:  # noqa: PLR0911  one answer a shape
    match key.shape:
        case Shape.TEXT | Shape.WHOLE | Shape.SWITCH:
            return _plain(key.shape, raw, at, found)
        case Shape.DURATION:
            return _duration(raw, at, found)
        case Shape.TEXTS:
            return _texts(raw, at, found)
        case Shape.NUMBER:
            return _number(raw, at, found)
        case Shape.PAIRS:
            return _pairs(raw, at, found)
        case Shape.COUNTS:
            return _counts(raw, at, found)
        case Shape.TABLE | Shape.ROWS | Shape.NAMED:
            return _nested(key, raw, at, found)
        case _:
            assert_never(key.shape)


_PLAIN: Mapping[Shape, type] = {Shape.TEXT: str, Shape.WHOLE: int, Shape.SWITCH: bool}
LARGEST = 10**12
"""A whole number up to this can be so many milliseconds from now, or rows of an answer."""
NUL = "holds a NUL character, which no path, command or name can"


def _plain(shape: Shape, raw: Any, at: Place, found: Findings) -> Any:
    if type(raw) is not _PLAIN[shape] or (type(raw) is int and abs(raw) >= 2**63):
        found.wrong(at, f"must be {_article(shape)}, not {_said(raw)}")
    elif type(raw) is int and abs(raw) > LARGEST:
        found.wrong(at, f"is {_said(raw)}; it must be between -{LARGEST:,} and {LARGEST:,}")
    elif type(raw) is str and "\0" in raw:
        found.wrong(at, NUL)
    else:
        return raw
    return _BAD


def _duration(raw: Any, at: Place, found: Findings) -> timedelta | object:
    if not isinstance(raw, str):
        found.wrong(at, f"must be a duration such as `90s`, `1h30m` or `7d`, not {_said(raw)}")
        return _BAD
    try:
        return parse_duration(raw)
    except ValueError as error:
        found.wrong(at, str(error))
        return _BAD


def _texts(raw: Any, at: Place, found: Findings) -> tuple[str, ...] | object:
    if not isinstance(raw, list):
        found.wrong(at, f"must be a list of texts, not {_said(raw)}")
        return _BAD
    wrong = next((item for item in raw if not isinstance(item, str)), None)
    if wrong is not None:
        found.wrong(at, f"must be a list of texts, but one item is {_said(wrong)}")
        return _BAD
    if any("\0" in item for item in raw):
        found.wrong(at, NUL)
        return _BAD
    return tuple(raw)


def _pairs(raw: Any, at: Place, found: Findings) -> dict[str, str] | object:
    if not isinstance(raw, dict):
        found.wrong(at, f"must be a table of texts, not {_said(raw)}")
        return _BAD
    good = True
    for name, value in raw.items():
        if not env_name(name):
            found.wrong(at / name, f"`{name}` is not a name of an environment variable")
        elif not isinstance(value, str):
            found.wrong(at / name, f"must be a text, not {_said(value)}")
        elif "\0" in value:
            found.wrong(at / name, "holds a NUL, which no environment variable can")
        else:
            continue
        good = False
    return dict(raw) if good else _BAD


def _number(raw: Any, at: Place, found: Findings) -> float | object:
    if type(raw) in {int, float} and isfinite(raw):
        return float(raw)
    found.wrong(at, f"must be a number, not {_said(raw)}")
    return _BAD


def _counts(raw: Any, at: Place, found: Findings) -> dict[str, int] | object:
    if not isinstance(raw, dict):
        found.wrong(at, f"must be a table of whole numbers, not {_said(raw)}")
        return _BAD
    wrong = {name: value for name, value in raw.items() if type(value) is not int or not 0 <= value <= LARGEST}
    for name, value in wrong.items():
        found.wrong(at / name, f"must be a whole number of 0 or more, not {_said(value)}")
    return _BAD if wrong else dict(raw)


def _nested(key: Key, raw: Any, at: Place, found: Findings) -> Any:
    section = key.holds
    assert section is not None  # noqa: S101  a table key without its section is a mistake in the model
    if key.shape is Shape.ROWS:
        if not isinstance(raw, list) or not all(isinstance(row, dict) for row in raw):
            found.wrong(at, f"must be a list of tables, written `[[{key.name}]]`, not {_said(raw)}")
            return _BAD
        return [read(section, row, at / index, found) for index, row in enumerate(raw)]
    if not isinstance(raw, dict):
        found.wrong(at, f"must be a table, not {_said(raw)}")
        return _BAD
    if key.shape is Shape.TABLE:
        return read(section, raw, at, found)
    return _named(section, raw, at, found)


def _named(section: type, raw: dict[str, Any], at: Place, found: Findings) -> dict[str, Table]:
    rows = {}
    for name, row in raw.items():
        if isinstance(row, dict):
            rows[name] = read(section, row, at / name, found)
        else:
            found.wrong(at / name, f"must be a table, not {_said(row)}")
    return rows


_LATER = {
    "agent": "is how later versions of Gas City write `[[agents]]`; write it so",
    "imports": "is of later versions of Gas City; name topologies in `workspace.topologies`",
    "pack": "is of later versions of Gas City; a topology has a topology.toml with `[topology]`",
    "packs": "is of later versions of Gas City; name topologies in `[topologies]`",
    "orders": "is how later versions of Gas City write `[automations]`; write it so",
}
"""Keys of files that were written for later versions of Gas City."""


def _unknown(name: str, section: type, known: Mapping[str, Key]) -> str:
    if section in {model.City, model.TopologyFile} and name in _LATER:
        return _LATER[name]
    near = did_you_mean(name, known)
    if near:
        return f"is not a setting{near}"
    if looks_secret(name):
        return "is not a setting; secrets come from the environment or the encrypted store, never from a file"
    homes = [home for home in _homes().get(name, ()) if home]
    if section is model.City and homes:
        return f"is not a setting here; it belongs in `[{homes[0]}]`"
    return "is not a setting"


@lru_cache
def _homes() -> Mapping[str, list[str]]:
    """The sections of the city by the keys they have, to explain a key written one level too high."""
    homes: dict[str, list[str]] = {}
    for top in keys_of(model.City).values():
        if top.shape is Shape.TABLE and top.holds is not None:
            for name in keys_of(top.holds):
                homes.setdefault(name, []).append(top.name)
    return homes


def _article(shape: Shape) -> str:
    return "`true` or `false`" if shape is Shape.SWITCH else f"a {shape}"


def _said(raw: Any) -> str:
    if isinstance(raw, bool):
        return f"`{str(raw).lower()}`"
    if isinstance(raw, int) and abs(raw) >= 2**63:
        return "a number too large to keep"
    if isinstance(raw, int | float):
        return f"the number {raw}"
    if isinstance(raw, str):
        return f'the text "{raw[:40]}"'
    names: Mapping[type, str] = {list: "a list", dict: "a table"}
    return names.get(type(raw), f"the date or time {raw}")
