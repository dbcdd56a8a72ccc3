"""Measures the shape of the source: files, lines, imports inside functions, circles of imports, test lines per line.

Prints one line of JSON. A circle is a set of modules that import each other, directly or through others; imports inside
functions count, imports for type checking alone do not.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = "lamplighter"
COMMANDS = f"{PACKAGE}.cli"
"""The command line imports inside functions on purpose: a short command loads only what it needs."""
SHORT = 40


@dataclass(frozen=True)
class Found:
    """One import statement of a module: the modules it loads, and whether it stands inside a function."""

    modules: frozenset[str]
    inner: bool


def main() -> None:
    repository = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else REPOSITORY
    print(json.dumps(measures(repository)))


def measures(repository: Path) -> dict[str, object]:
    source = repository / "src" / PACKAGE
    trees = {_name(path, source): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    imports = {name: list(_imports(name, tree, trees)) for name, tree in trees.items()}
    graph = {name: frozenset().union(*(one.modules for one in found)) - {name} for name, found in imports.items()}
    inner = {name: sum(one.inner for one in found) for name, found in imports.items()}
    lengths = [_lines(path) for path in source.rglob("*.py")]
    tested = sum(_lines(path) for path in (repository / "tests").rglob("*.py"))
    return {
        "files": len(lengths),
        f"files_under_{SHORT}_lines": sum(length < SHORT for length in lengths),
        "lines": sum(lengths),
        "imports_inside_functions": sum(inner.values()),
        "imports_inside_functions_outside_cli": sum(
            count for name, count in inner.items() if name != COMMANDS and not name.startswith(COMMANDS + ".")
        ),
        "cycles": circles(graph),
        "test_lines_per_line": round(tested / sum(lengths), 2),
    }


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """The sets of modules that reach each other, largest first. Walks without recursion: chains of imports are long."""
    order: list[str] = []
    visited: set[str] = set()
    for start in sorted(graph):
        _walk(start, graph, visited, order)
    backwards: dict[str, set[str]] = {name: set() for name in graph}
    for name, loads in graph.items():
        for other in loads:
            backwards[other].add(name)
    assigned: set[str] = set()
    found = []
    for start in reversed(order):
        group: list[str] = []
        _walk(start, {name: frozenset(loads) for name, loads in backwards.items()}, assigned, group)
        if len(group) > 1:
            found.append(sorted(group))
    return sorted(found, key=lambda group: (-len(group), group))


def _walk(start: str, graph: Mapping[str, frozenset[str]], visited: set[str], order: list[str]) -> None:
    """Add everything that `start` reaches and is not yet visited to `order`, each after what it reaches."""
    if start in visited:
        return
    visited.add(start)
    stack = [(start, iter(sorted(graph[start])))]
    while stack:
        name, rest = stack[-1]
        following = next((other for other in rest if other not in visited), None)
        if following is None:
            order.append(name)
            stack.pop()
        else:
            visited.add(following)
            stack.append((following, iter(sorted(graph[following]))))


def _imports(name: str, tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[Found]:
    for node, inner in _statements(tree, inner=False):
        if isinstance(node, ast.Import):
            yield Found(frozenset(one.name for one in node.names if one.name in known), inner)
        else:
            yield Found(frozenset(_loaded(name, node, known)), inner)


def _statements(node: ast.AST, *, inner: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inner
        else:
            yield from _statements(child, inner=inner or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def _loaded(name: str, node: ast.ImportFrom, known: Mapping[str, ast.Module]) -> Iterator[str]:
    """The modules behind `from base import names`: a name may be a module itself, or something that `base` defines."""
    base = node.module or ""
    if node.level:
        above = name.split(".")[: -node.level]
        base = ".".join([*above, base] if base else above)
    for one in node.names:
        module = f"{base}.{one.name}"
        if module in known:
            yield module
        elif base in known:
            yield base


def _name(path: Path, source: Path) -> str:
    parts = [PACKAGE, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
