"""Changes one key or row of a TOML text by splicing, so that every other byte stays as it was."""

import itertools
import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import Array, InlineTable

from lamplighter.adapters.files.layout import Layout, Pair, layout_of
from lamplighter.domain.city.tree import KeyPath
from lamplighter.kit.errors import LampError


def set_key(text: str, path: KeyPath, value: object) -> str:
    """`text` with one key set. Raises LampError when that is impossible without changing anything else."""
    layout = layout_of(text)
    pair = layout.pairs.get(path)
    if pair is not None:
        after = text[: pair.value_start] + _written(value) + text[pair.value_end :]
    elif (holder := _holder(layout, path)) is not None:
        after = _inside(text, layout.pairs[holder], path[len(holder) :], value)
    else:
        after = _inserted(text, layout, path, value)
    return _checked(text, after, path, value)


def append_row(text: str, path: KeyPath, row: Mapping[str, object]) -> str:
    """`text` with one more row in a list of tables: in an inline list, after the row it is part of, or at the end."""
    layout = layout_of(text)
    pair = layout.pairs.get(path)
    rows = value_at(text, path, [])
    holder = path if pair is not None else _holder(layout, path)
    if holder is not None:
        inner = (*path[len(holder) :], len(rows))
        after = _inside(text, layout.pairs[holder], inner if rows else inner[:-1], row if rows else [row])
    else:
        block = _block(path, row, _break(text))
        after = _placed_block(text, layout, path, block)
    return _checked(text, after, (*path, len(rows)), dict(row))


def _holder(layout: Layout, path: KeyPath) -> KeyPath | None:
    """The pair whose value, an inline table or list, holds this path."""
    return next((path[:length] for length in range(len(path) - 1, 0, -1) if path[:length] in layout.pairs), None)


def _inside(text: str, pair: Pair, path: KeyPath, value: object) -> str:
    """Change an inline value; only that value is rewritten."""
    item: Any = tomlkit.value(text[pair.value_start : pair.value_end])
    target = item
    if not path:
        item = _item(value)
    for step in path[:-1]:
        if isinstance(step, str) and step not in target:
            target[step] = tomlkit.inline_table()
        target = target[step]
    if path and isinstance(target, Array) and path[-1] == len(target):
        target.append(_item(value))
    elif path and isinstance(target, Array | InlineTable):
        target[path[-1]] = _item(value)  # type: ignore[index]  # a step of the kind that this item takes
    elif path:
        raise _refused(path)
    return f"{text[: pair.value_start]}{item.as_string()}{text[pair.value_end :]}"


def _inserted(text: str, layout: Layout, path: KeyPath, value: object) -> str:
    """Add a key below its table's last key or header, after dotted keys of that table, or in a new table."""
    table, end = path[:-1], _break(text)
    key = str(path[-1])
    if table in layout.headers or not table:
        where = layout.ends.get(table, layout.headers.get(table, 0))
        return _with_line(text, where, f"{_indent(text, layout, table)}{_name(key)} = {_written(value)}", end)
    kin = [(pair.end, pair.table) for known, pair in layout.pairs.items() if known[: len(table)] == table]
    if kin:
        where, under = max(kin)
        dotted = ".".join(_name(str(step)) for step in path[len(under) :])
        return _with_line(text, where, f"{_indent(text, layout, under)}{dotted} = {_written(value)}", end)
    block = f"[{_header(table)}]{end}{_name(key)} = {_written(value)}{end}"
    return _placed_block(text, layout, table, block)


def _placed_block(text: str, layout: Layout, path: KeyPath, block: str) -> str:
    """Put the block after the row that it is part of, else at the end."""
    rows = [index for index, step in enumerate(path) if isinstance(step, int)]
    end = _break(text)
    if not rows:
        joint = "" if not text or text.endswith("\n") else end
        return f"{text}{joint}{end if text.strip() else ''}{block}"
    row = path[: rows[-1] + 1]
    known = {**layout.headers, **layout.ends}
    where = max(offset for table, offset in known.items() if table[: len(row)] == row)
    joint = "" if text[:where].endswith("\n") else end
    return f"{text[:where]}{joint}{end}{block}{text[where:]}"


def _with_line(text: str, where: int, line: str, end: str) -> str:
    joint = "" if where == 0 or text[:where].endswith("\n") else end
    return f"{text[:where]}{joint}{line}{end}{text[where:]}"


def _indent(text: str, layout: Layout, table: KeyPath) -> str:
    """The indentation of the last key of the same table."""
    starts = [pair.start for pair in layout.pairs.values() if pair.table == table]
    if not starts:
        return ""
    line = text.rfind("\n", 0, starts[-1]) + 1
    before = text[line : starts[-1]]
    return before if not before.strip() else ""


def _block(path: KeyPath, row: Mapping[str, object], end: str) -> str:
    lines = [f"[[{_header(path)}]]"]
    plain = {key: value for key, value in row.items() if not isinstance(value, Mapping)}
    lines += [f"{_name(key)} = {_written(value)}" for key, value in plain.items()]
    lines += [f"{_name(key)} = {_written(value)}" for key, value in row.items() if isinstance(value, Mapping)]
    return "".join(line + end for line in lines)


def _header(path: KeyPath) -> str:
    return ".".join(_name(step) for step in path if isinstance(step, str))


def _name(key: str) -> str:
    return tomlkit.key(key).as_string()


def _written(value: object) -> str:
    written: str = _item(value).as_string()
    return written


def _item(value: object) -> Any:
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for name, inner in value.items():
            table[name] = _item(inner)
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for inner in value:
            array.append(_item(inner))
        return array
    return tomlkit.item(value)


def _break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def value_at(text: str, path: KeyPath, default: Any) -> Any:
    """The value that a text has at a path."""
    tree: Any = tomllib.loads(text)
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return default
    return tree


def _checked(before: str, after: str, path: KeyPath, value: object) -> str:
    """Return the new text. Raises LampError unless this key and nothing else changed."""
    wanted = tomllib.loads(before)
    try:
        _put(wanted, path, value)
        right = tomllib.loads(after) == wanted
    except (tomllib.TOMLDecodeError, TypeError):
        right = False
    if not right:
        raise _refused(path)
    return after


def _refused(path: KeyPath) -> LampError:
    key = ".".join(map(str, path))
    return LampError(f"`{key}` cannot be changed without rewriting more of the file.", hint="Change it by hand.")


def _put(tree: Any, path: KeyPath, value: object) -> None:
    for step, following in itertools.pairwise(path):
        if isinstance(step, str) and step not in tree:
            tree[step] = [] if isinstance(following, int) else {}
        tree = tree[step]
    last = path[-1]
    if isinstance(last, int) and last == len(tree):
        tree.append(value)
    else:
        tree[last] = list(value) if isinstance(value, tuple) else value
