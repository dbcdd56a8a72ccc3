"""Merges fragments into the root file: which keys are joined, which replaced, and a note for each overridden value."""

from collections.abc import Iterable
from pathlib import Path

from lamplighter.domain.city.paths import from_city, resolved
from lamplighter.domain.city.tree import Findings, Leaf, Table

AGENT_PATHS = ("prompt_template", "session_setup_script", "overlay_dir")
_JOINED = frozenset({"agents", "rigs", "configurations"})
_REPLACED = frozenset({"beads", "dolt", "formulas", "daemon", "session", "mail", "events"})
_LISTS = frozenset({("workspace", "topologies"), ("automations", "skip"), ("automations", "overrides")})


def merge_files(base: Table, fragments: Iterable[Table], root: Path, found: Findings) -> Table:
    """The root file with its fragments merged in order; paths of agents become relative to the city."""
    merged = with_own_paths(base, root)
    for fragment in fragments:
        if "include" in fragment.leaves:
            found.wrong(fragment.at("include"), "a fragment cannot include others; list them in `city.toml`")
        merged = _merge(merged, with_own_paths(fragment.without("include"), root), found)
    return merged


def with_own_paths(table: Table, root: Path) -> Table:
    """`table` with agents' paths, written relative to the declaring file, turned into paths from the city."""
    agents = [_placed(agent, root) for agent in table.tables("agents")]
    return table.having({"agents": Leaf(agents, table.at("agents"))}) if agents else table


def _placed(agent: Table, root: Path) -> Table:
    directory = agent.place.origin.directory
    changed = {
        key: Leaf(resolved(leaf.value, directory, root) if directory != root else from_city(leaf.value), leaf.place)
        for key in AGENT_PATHS
        if (leaf := agent.leaves.get(key)) is not None
    }
    return agent.having(changed) if changed else agent


def _merge(base: Table, over: Table, found: Findings) -> Table:
    leaves = dict(base.leaves)
    for name, leaf in over.leaves.items():
        old = leaves.get(name)
        leaves[name] = leaf if old is None else _joined(name, old, leaf, found)
    return Table(base.section, base.place, leaves)


def _joined(name: str, old: Leaf, new: Leaf, found: Findings) -> Leaf:
    if name in _JOINED:
        return Leaf(old.value + new.value, old.place)
    if name in _REPLACED:
        return _replaced(name, old, new, found)
    if name == "patches":
        return Leaf(_concatenated(old.value, new.value), old.place)
    if name == "topologies":
        for row in old.value.keys() & new.value.keys():
            found.note(new.place / row, _again(old.value[row].place.origin.file))
        return Leaf({**old.value, **new.value}, old.place)
    if name == "providers":
        return Leaf(_merged_rows(old.value, new.value, found), old.place)
    return Leaf(merge_fields(old.value, new.value, found), old.place)


def merge_fields(old: Table, new: Table, found: Findings) -> Table:
    """Merge field by field: the new value wins, with a note if it differs; the lists in `_LISTS` are joined."""
    leaves = dict(old.leaves)
    top = str(old.place.path[0]) if old.place.path else ""
    for name, leaf in new.leaves.items():
        before = leaves.get(name)
        if before is not None and (top, name) in _LISTS:
            leaves[name] = Leaf(before.value + leaf.value, before.place)
            continue
        if before is not None and before.value != leaf.value:
            found.note(leaf.place, _again(before.place.origin.file))
        leaves[name] = leaf
    return Table(old.section, old.place, leaves)


def _merged_rows(old: dict[str, Table], new: dict[str, Table], found: Findings) -> dict[str, Table]:
    rows = dict(old)
    for name, row in new.items():
        rows[name] = merge_fields(rows[name], row, found) if name in rows else row
    return rows


def _replaced(name: str, old: Leaf, new: Leaf, found: Findings) -> Leaf:
    lost = sorted(old.value.leaves.keys() - new.value.leaves.keys())
    if lost:
        keys = ", ".join(f"`{key}`" for key in lost)
        found.note(
            new.place, f"replaces the whole `[{name}]` of {old.place.origin.file}; {keys} set there no longer counts"
        )
    for key in sorted(old.value.leaves.keys() & new.value.leaves.keys()):
        if old.value.get(key) != new.value.get(key):
            found.note(new.value.at(key), _again(old.value.at(key).origin.file))
    return new


def _concatenated(old: Table, new: Table) -> Table:
    leaves = dict(old.leaves)
    for name, leaf in new.leaves.items():
        before = leaves.get(name)
        leaves[name] = leaf if before is None else Leaf(before.value + leaf.value, before.place)
    return Table(old.section, old.place, leaves)


def _again(file: str) -> str:
    return f"is also set in {file}; the value here wins"
