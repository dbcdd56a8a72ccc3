"""The city as one file, and where each value was set: the output of `lamp config show` and `lamp config explain`."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from lamplighter.domain.city.keys import Key, Shape, attribute, keys_of
from lamplighter.domain.city.limits import looks_secret
from lamplighter.domain.city.loaded import LoadedCity
from lamplighter.domain.city.tree import Leaf, Table
from lamplighter.domain.secrets import referred
from lamplighter.kit.durations import format_duration
from lamplighter.kit.errors import NotFound
from lamplighter.kit.masking import MASK, masked
from lamplighter.kit.nearest import full_stop
from lamplighter.kit.records import record

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_STEP = re.compile(r'"([^"]*)"|([^."\[\]]+)|\[(\d+)\]')
_NESTED = frozenset({Shape.TABLE, Shape.ROWS, Shape.NAMED})


@record
class Explanation:
    """A value as TOML, and the layer, file and line that set it."""

    key: str
    value: str
    layer: str
    file: str = ""
    line: int | None = None


def explain(loaded: LoadedCity, key: str) -> list[Explanation]:
    """Explain a value, or every value of a section: `daemon.max_restarts`, `daemon`, `agents."rig/coder".nudge`.

    Raises NotFound for a key that is not a setting and for a row that does not exist.
    """
    steps = [quoted or bare or number for quoted, bare, number in _STEP.findall(key)]
    if not steps:
        raise NotFound("No key was given.", hint="Name one, such as `daemon.patrol_interval`.")
    return list(_explained(loaded.table, loaded.city, steps, ""))


def explain_agent(loaded: LoadedCity, qualified: str) -> list[Explanation]:
    """Explain every key of one agent, defaults included; nested tables only if they are set. Raises NotFound."""
    return explain(loaded, f'agents."{qualified}"')


def show(loaded: LoadedCity, *, provenance: bool = False) -> str:
    """The city as one file that can be loaded alone, with the parts from other files included; secrets are masked."""
    table = loaded.table.without("include", "topologies", "patches")
    workspace = table.get("workspace")
    if workspace is not None:
        table = table.having({"workspace": Leaf(workspace.without("topology", "topologies"), workspace.place)})
    rigs = [rig.without("topology", "topologies", "overrides") for rig in table.tables("rigs")]
    table = table.having({"rigs": Leaf(rigs, table.at("rigs"))})
    return "\n".join(_lines(table, (), provenance=provenance)).strip() + "\n"


def toml_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case timedelta():
            return f'"{format_duration(value)}"'
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple() | list():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case Mapping():
            inner = ", ".join(f"{_bare(str(name))} = {toml_value(item)}" for name, item in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case _:
            return str(value)


def _explained(table: Table, model: object, steps: list[str], prefix: str) -> Iterator[Explanation]:
    first, *rest = steps
    known = keys_of(table.section)
    key = known.get(first)
    if key is None:
        raise NotFound(f"`{prefix}{first}` is not a setting{full_stop(first, known)}")
    here = f"{prefix}{first}"
    leaf = table.leaves.get(first)
    value = getattr(model, attribute(first))
    if key.shape not in _NESTED:
        yield _one(here, key, leaf, value)
    elif key.shape is Shape.TABLE:
        yield from _inside(leaf.value if leaf else Table(key.holds or object, table.place), value, rest, here)
    else:
        yield from _rows(leaf, value, rest, here)


def _inside(table: Table, model: object, rest: list[str], here: str) -> Iterator[Explanation]:
    """Explain one key of a section, or all of them; without a key, nested tables that are not set are left out."""
    if model is None:
        return
    if rest:
        yield from _explained(table, model, rest, f"{here}.")
        return
    for name, key in keys_of(table.section).items():
        if key.shape in _NESTED and name not in table.leaves:
            continue
        yield from _explained(table, model, [name], f"{here}.")


def _rows(leaf: Leaf | None, models: Any, rest: list[str], here: str) -> Iterator[Explanation]:
    """Explain rows by name; several may share a name, as overrides of one automation in two rigs do."""
    tables = leaf.value if leaf is not None else ()
    if isinstance(tables, dict):
        rows = [(name, table, models[name]) for name, table in tables.items()]
    else:
        rows = [(_row_name(table), table, row) for table, row in zip(tables, models, strict=True)]
    chosen = [row for row in rows if not rest or row[0] == rest[0]]
    if rest and not chosen:
        raise NotFound(f"There is no `{rest[0]}` in `{here}`{full_stop(rest[0], [row[0] for row in rows])}")
    for name, table, model in chosen:
        yield from _inside(table, model, rest[1:], f"{here}.{_bare(name)}")


def _one(here: str, key: Key, leaf: Leaf | None, value: object) -> Explanation:
    shown = "unset" if value is None else toml_value(covered(key.name, value))
    if leaf is None:
        return Explanation(here, shown, "default" if value == key.default else "derived")
    origin = leaf.place.origin
    file = str(leaf.place.path[0]) if origin.layer == "environment" else origin.file
    return Explanation(here, shown, origin.layer, file, leaf.place.line)


def _row_name(table: Table) -> str:
    name: str = table.get("name") or table.get("agent") or ""
    directory: str = table.get("dir") or ""
    return f"{directory}/{name}" if directory else name


def _lines(table: Table, path: tuple[str, ...], *, provenance: bool) -> Iterator[str]:
    keys = keys_of(table.section)
    set_keys = [(key, table.leaves[name]) for name, key in keys.items() if name in table.leaves]
    for key, leaf in set_keys:
        if key.shape not in _NESTED:
            note = f"  # {_from(leaf)}" if provenance else ""
            yield f"{key.name} = {toml_value(covered(key.name, leaf.value))}{note}"
    for key, leaf in set_keys:
        here = (*path, key.name)
        if key.shape is Shape.TABLE:
            yield from ("", f"[{_dotted(here)}]", *_lines(leaf.value, here, provenance=provenance))
        elif key.shape is Shape.NAMED:
            for name, row in leaf.value.items():
                yield from ("", f"[{_dotted((*here, name))}]", *_lines(row, (*here, name), provenance=provenance))
        elif key.shape is Shape.ROWS:
            for row in leaf.value:
                yield from ("", f"[[{_dotted(here)}]]", *_lines(row, here, provenance=provenance))


def _from(leaf: Leaf) -> str:
    origin = leaf.place.origin
    if origin.layer == "environment":
        return str(leaf.place.path[0])
    return f"{origin.file}:{leaf.place.line}" if leaf.place.line else origin.file


def covered(name: str, value: object) -> object:
    """`value` with secrets masked: passwords in URLs, and variables whose names look secret."""
    if isinstance(value, str):
        return MASK if value and looks_secret(name) and referred(value) is None else masked(value)
    if isinstance(value, Mapping):
        return {inner: covered(inner, item) for inner, item in value.items()}
    return value


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_bare, path))


def _bare(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name, ensure_ascii=False)
