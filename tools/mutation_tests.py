"""Which tests can notice a change to a module: those that name it, or reach it by few imports, the cheapest first."""

import ast
import re
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from import_measures import PACKAGE, _imports, _name

FOLDERS = {
    "domain": ("unit", "property", "files", "services"),
    "services": ("unit", "services", "mcp", "daemon"),
    "store": ("unit", "property", "services", "contract", "daemon", "migrations"),
    "daemon": ("unit", "daemon", "services", "contract"),
}
OTHERS = ("unit", "property", "adapters", "contract", "services", "daemon", "web", "mcp", "cli", "files", "migrations")
MOST_FILES, MOST_FILES_WIDE = 20, 40
SLOW = ("property", "daemon")
FAR = 4
ABOUT = {"city_id": "tests/services/test_two_cities.py"}
"""Where a word of what is changed has a test that asks all statements for it."""
WORD = re.compile(r"[A-Za-z_]{4,}")
REPOSITORY = re.compile(r"\btx\.(\w+)")
"""A repository is loaded when a transaction first names it."""


@dataclass(frozen=True)
class TestFile:
    path: str
    text: str
    words: frozenset[str]
    loads: frozenset[str]


@dataclass
class Choice:
    """The tests of a repository and how far each is from each module."""

    repository: Path
    graph: dict[str, frozenset[str]] = field(default_factory=dict)
    tests: list[TestFile] = field(default_factory=list)
    files_with: Counter[str] = field(default_factory=Counter)
    """In how many files of tests a word stands."""

    def __post_init__(self) -> None:
        source = self.repository / "src" / PACKAGE
        trees = {_name(path, source): _tree(path) for path in sorted(source.rglob("*.py"))}
        for name, tree in trees.items():
            loads = frozenset().union(*(one.modules for one in _imports(name, tree, trees)))
            self.graph[name] = loads | _repositories(ast.unparse(tree), trees)
        helpers = {path.stem: path for path in (self.repository / "tests").rglob("*.py")}
        for path in sorted((self.repository / "tests").rglob("test_*.py")):
            text = path.read_text(encoding="utf-8")
            loads = frozenset(_loads(path, helpers, trees)) | _repositories(text, trees)
            name = path.relative_to(self.repository).as_posix()
            self.tests.append(TestFile(name, text, frozenset(WORD.findall(text)), loads))
        for test in self.tests:
            self.files_with.update(test.words)

    def _rarity(self, test: TestFile, words: frozenset[str]) -> float:
        """The rarer a word of the changed lines is among the tests, the likelier a test with it is about them."""
        return sum(log(len(self.tests) / self.files_with[word]) for word in words & test.words)

    def of(
        self, path: str, names: tuple[str, ...], words: frozenset[str], *, text: str, wide: bool
    ) -> dict[str, float]:
        """The files whose tests can notice a change to what has these names, the likeliest, each with its points.

        Those of the folders where the layer has its tests; `wide`: more of them, of every folder. `text` is changed.
        """
        module = ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")
        folders = OTHERS if wide else FOLDERS.get(module.split(".")[1], OTHERS)
        near = _distances(module, self.graph)
        scored = {}
        for test in self.tests:
            if test.path.split("/")[1] in folders:
                points = _points(test, module, names, near)
                points += 100 * any(word in text and test.path == about for word, about in ABOUT.items())
                if points > 0:
                    scored[test.path] = points + min(4.0, self._rarity(test, words) / 4)
        return dict(sorted(scored.items(), key=lambda one: -one[1])[: MOST_FILES_WIDE if wide else MOST_FILES])


def _points(test: TestFile, module: str, names: tuple[str, ...], near: Mapping[str, int]) -> float:
    stem = module.rsplit(".", 1)[-1]
    distance = min((near[one] for one in test.loads if one in near), default=FAR)
    if distance >= FAR:
        return 0
    points = float(FAR - distance)
    for name in names:
        if name in test.words:
            points += 4 if f"{stem}.{name}" in test.text else 2
    words = set(re.split(r"[_/.]", test.path))
    words |= {word.rstrip("s") for word in words}
    points += 2 * len({one for one in stem.split("_") if one.rstrip("s") in words})
    points += 0.5 * len({one for one in module.split(".")[2:-1] if one.rstrip("s") in words})
    return points - (test.path.split("/")[1] in SLOW)


def _repositories(text: str, known: Mapping[str, ast.Module]) -> frozenset[str]:
    named = {f"{PACKAGE}.store.{one}" for one in REPOSITORY.findall(text)}
    return frozenset(named & known.keys())


def _distances(module: str, graph: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """How many imports lie between each module and this one, up to FAR."""
    importers: dict[str, set[str]] = {}
    for name, loads in graph.items():
        for one in loads:
            importers.setdefault(one, set()).add(name)
    found, queue = {module: 0}, deque([module])
    while queue:
        name = queue.popleft()
        if found[name] + 1 < FAR:
            for other in importers.get(name, ()):
                if other not in found:
                    found[other] = found[name] + 1
                    queue.append(other)
    return found


def _loads(path: Path, helpers: Mapping[str, Path], known: Mapping[str, ast.Module]) -> set[str]:
    """The modules that a test imports, itself or by the helpers beside it."""
    found: set[str] = set()
    waiting, seen = [path], {path}
    while waiting:
        tree = _tree(waiting.pop())
        for one in _imports("", tree, known):
            found |= one.modules
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                helper = helpers.get(name.rsplit(".", 1)[-1])
                if helper is not None and not name.startswith(PACKAGE) and helper not in seen:
                    seen.add(helper)
                    waiting.append(helper)
    return found


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
