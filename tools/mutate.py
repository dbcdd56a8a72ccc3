"""Small changes to the code, one at a time: which of them does no test notice?

Collects the tests of the changed folders once, in a temporary copy of the repository. For each change it forks: the
child puts the change into the loaded module and runs the tests that can notice it (`mutation_tests.py`), the likeliest
first, for some seconds, without those that need PostgreSQL. What these do not notice is tried once more, longer, by
more files of tests and on PostgreSQL too: only what passes there as well has survived. A change is noticed if a test
fails with it, each of two times, that passes without it. Work is time of a processor, so that a busy machine does not
decide. What is equivalent by rule is not tried (`mutation_rules.py`). Prints a line for each change that nobody
noticed, then one of JSON for all. The same seed makes the same choice of changes.
"""

import argparse
import ast
import contextlib
import inspect
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from math import inf, log
from pathlib import Path

import pytest
from mutation_patch import CannotPatch, patch
from mutation_rules import left_out
from mutation_tests import WORD, Choice

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/lamplighter")
COPIED = ("src", "tests", "docs", "tools", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
LIMIT = 150.0
WORK = 2.5
"""So many seconds of work are spent on one change at first."""
SURE = 10.0
"""So many more on one that was not noticed: what is noticed is still a lower bound."""
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SQL_TERM = re.compile(r"\bAND (?:[\w.]+ (?:=|<>|<=|>=|<|>) (?::\w+|'\w+'|\d+)|[\w.]+ IS (?:NOT )?NULL)")
SQL_FIRST = re.compile(r"\bWHERE [\w.]+ = :\w+ AND ")
SQL_BOUND = re.compile(r"(?<=[\w)] )(?:<=|>=|<|>)(?= :\w)")
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
LOOPS = 60
"""A child that has used so many seconds of a processor beyond its work goes round in circles."""


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int  # where in the file's bytes `before` begins
    names: tuple[str, ...] = ()
    """What it stands in, from the outermost; for a constant, also what uses it."""
    near: frozenset[str] = frozenset()
    """The words of the lines around it."""

    def __str__(self) -> str:
        before, after = (" ".join(text.split())[:90] for text in (self.before, self.after))
        inside = self.names[0] if self.names else "the module"
        return f"{self.path}:{self.line} {self.kind} in {inside}: {before} -> {after or 'nothing'}"


def main() -> None:
    asked = _arguments()
    kinds = asked.kinds.split(",") if asked.kinds else []
    mutants = {path: _chosen(path, kinds, asked.most, asked.seed) for path in asked.paths}
    with tempfile.TemporaryDirectory(prefix="mutants-") as made:
        copy = Path(made) / "repository"
        _copy(copy)
        _try_all(Trial(copy, asked.tests, asked.limit, mutants, asked.seed, asked.minutes, asked.work, asked.sure))


def _chosen(path: str, kinds: list[str], most: int, seed: int) -> list[Mutant]:
    path, _, line = path.partition(":")
    found = [one for file in _files(path) for one in mutants_of(file) if not kinds or one.kind in kinds]
    found = [one for one in found if not line or one.line == int(line)]
    if not 0 < most < len(found):
        return found
    return random.Random(seed).sample(found, most)  # noqa: S311  a choice to repeat


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", help="files or folders below src/lamplighter, or FILE:LINE")
    parser.add_argument("--tests", help="what pytest is given instead of the tests that are chosen")
    parser.add_argument("--most", type=int, default=0, help="so many changes of each path, chosen by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0, help="how long at most; the paths take turns")
    parser.add_argument("--kinds", help="only changes of these kinds, joined by commas")
    parser.add_argument("--work", type=float, default=WORK, help="seconds of work spent on one change at most")
    parser.add_argument("--sure", type=float, default=SURE, help="so many more on one that was not noticed; 0: none")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each run of tests")
    return parser.parse_args()


def _files(path: str) -> list[Path]:
    found = REPOSITORY / path
    return sorted(found.rglob("*.py")) if found.is_dir() else [found]


def _copy(to: Path) -> None:
    to.mkdir()
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, to / name)


def _try_all(trial: "Trial") -> None:
    """The tests and their subprocesses see the copy instead of what is installed."""
    os.chdir(trial.copy)
    os.environ |= {"PYTHONPATH": str(trial.copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(trial.copy / "src"))
    options = ["-q", "-s", "-n", "0", "-p", "no:cacheprovider", "--rootdir", str(trial.copy)]
    written = os.open(trial.copy.parent / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(written, 1)
    os.dup2(written, 2)
    code = pytest.main([*options, *trial.files()], plugins=[trial])
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        trial.say((trial.copy.parent / "output").read_text()[-3000:])


@dataclass(eq=False)
class Trial:
    """The copy that is changed, and the tests that are run on it: a plugin that runs them in its own way."""

    copy: Path
    tests: str | None
    limit: float
    mutants: dict[str, list[Mutant]]
    seed: int
    minutes: float = 0
    work: float = WORK
    sure: float = SURE
    told: int = field(default_factory=lambda: os.dup(1))
    choice: Choice = field(init=False)
    items: dict[str, list[pytest.Item]] = field(default_factory=lambda: defaultdict(list))
    files_of: dict[tuple[Mutant, bool], dict[str, float]] = field(default_factory=dict)
    words: dict[str, frozenset[str]] = field(default_factory=dict)
    tests_with: Counter[str] = field(default_factory=Counter)
    sound: dict[str, bool] = field(default_factory=dict)
    """Whether a test passes without any change."""

    def __post_init__(self) -> None:
        self.choice = Choice(self.copy)

    def say(self, text: str) -> None:
        os.write(self.told, f"{text}\n".encode())

    def files(self) -> list[str]:
        if self.tests:
            return self.tests.split()
        tried = [one for mutants in self.mutants.values() for one in mutants]
        return sorted({file for one in tried for file in self._files(one, wide=self.sure > 0)})

    def _files(self, mutant: Mutant, *, wide: bool = False) -> dict[str, float]:
        if (mutant, wide) not in self.files_of:
            found = self.choice.of(mutant.path, mutant.names, mutant.near, text=mutant.before, wide=wide)
            self.files_of[mutant, wide] = found
        return self.files_of[mutant, wide]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            self.items[item.path.relative_to(self.copy).as_posix()].append(item)
            source = inspect.getsource(item.function)  # type: ignore[attr-defined]  # of a Function
            self.words[item.nodeid] = _words(f"{source} {item.name.replace('_', ' ')}")
        self.tests_with.update(word for words in self.words.values() for word in words)
        self._start_postgres()
        outcomes: dict[str, Counter[str]] = {path: Counter() for path in self.mutants}
        until = time.monotonic() + 60 * self.minutes if self.minutes else inf
        for round_of_all in zip_longest(*self.mutants.values()):
            for path, mutant in zip(self.mutants, round_of_all, strict=True):
                if mutant is not None and time.monotonic() < until:
                    outcome = self.outcome(mutant)
                    outcomes[path][outcome] += 1
                    if outcome == "survived":
                        self.say(f"survived {mutant}")
        for path, found in outcomes.items():
            self._sum_up(path, found)
        return True

    def _start_postgres(self) -> None:
        """Run one test that needs the server, so that every child finds it and its template there."""
        items = [item for items in self.items.values() for item in items]
        first = next((item for item in items if _needs_postgres(item)), None)
        if first is None or not self.sure:
            return
        other = next((item for item in items if item.path != first.path), None)
        first.config.hook.pytest_runtest_protocol(item=first, nextitem=other)
        fixtures = first.session._fixturemanager  # noqa: SLF001  pytest has no other door
        for made in fixtures.getfixturedefs("empty_databases", first) or ():
            if made.cached_result is not None and made.cached_result[0] is not None:
                made.cached_result[0].clear()  # each child would take the same one

    def _sum_up(self, path: str, outcomes: Counter[str]) -> None:
        tried = outcomes.total() - outcomes["not tried"] - outcomes["undecided"]
        noticed = tried - outcomes["survived"]
        share = round(noticed / tried, 3) if tried else None
        found = {"path": path, "mutants": tried, "noticed": noticed, "share": share, "seed": self.seed}
        self.say(json.dumps(found | outcomes))

    def outcome(self, mutant: Mutant) -> str:
        """By the likeliest tests, and if they do not notice it by all others that can."""
        narrow = [item for item in self._likeliest(mutant) if not _needs_postgres(item)]
        found, ran = self._tried(narrow, mutant, self.work)
        if found in {"survived", "undecided"} and self.sure:
            done = {item.nodeid for item in narrow[:ran]}
            wide = [item for item in self._likeliest(mutant, wide=True) if item.nodeid not in done]
            found, _ = self._tried(wide, mutant, self.sure)
        return found

    def _tried(self, items: list[pytest.Item], mutant: Mutant, work: float) -> tuple[str, int]:
        """The outcome, and how many tests were run. What failed by chance or for want of time is not believed."""
        while (found := self._forked(items, mutant, work))[0] == "failed" and not self._is_noticed_by(found[1], mutant):
            items = [item for item in items if item.nodeid != found[1]]
        return found[0], int(found[1]) if found[0] == "survived" else 0

    def _likeliest(self, mutant: Mutant, *, wide: bool = False) -> list[pytest.Item]:
        """The tests that can notice it, in the order of how much they have in common with the changed lines."""
        files = dict.fromkeys(self.items, 0.0) if self.tests else self._files(mutant, wide=wide)
        stem = Path(mutant.path).stem.replace("_", " ")
        wanted = _words(" ".join([*mutant.near, *mutant.names, stem]))
        scored = [
            (points + self._rarity(item, wanted), item) for file, points in files.items() for item in self.items[file]
        ]
        return [item for _, item in sorted(scored, key=lambda one: -one[0])]

    def _rarity(self, item: pytest.Item, words: frozenset[str]) -> float:
        common = words & self.words[item.nodeid]
        return sum(log(len(self.words) / self.tests_with[word]) for word in common) / 2

    def _is_noticed_by(self, test: str, mutant: Mutant) -> bool:
        """Whether the test passes without the change, and fails with it each time."""
        items = [item for items in self.items.values() for item in items if item.nodeid == test]
        if test not in self.sound:
            self.sound[test] = self._forked(items, None, self.work)[0] == "survived"
        return self.sound[test] and self._forked(items, mutant, self.work)[0] != "survived"

    def _forked(self, items: list[pytest.Item], mutant: Mutant | None, work: float) -> tuple[str, str]:
        """How the tests go: `survived` when every one passes, with how many were run; else the first that failed."""
        told = self.copy.parent / "failed"
        told.write_text("")
        kept = b"" if mutant is None else (self.copy / mutant.path).read_bytes()
        try:
            if mutant is not None:
                (self.copy / mutant.path).write_bytes(changed(kept, mutant))  # for the processes that tests start
            process = os.fork()
            if process == 0:
                _child(items, mutant, self.copy, told, work, self.limit / 2)
            outcome = _ended(process, self.limit)
        finally:
            if mutant is not None:
                (self.copy / mutant.path).write_bytes(kept)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        return outcome, told.read_text()


def _words(text: str) -> frozenset[str]:
    """Also without a plural's end: names of tests are sentences."""
    found = WORD.findall(text)
    return frozenset([*found, *(word.rstrip("s") for word in found)])


CODES = {0: "survived", 1: "failed", 4: "not tried", 5: "undecided", -signal.SIGXCPU: "timeout"}


def _child(items: list[pytest.Item], mutant: Mutant | None, copy: Path, told: Path, work: float, within: float) -> None:
    """Run the tests until one fails or for so many seconds of work; undecided where a busy machine leaves no time."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(work) + LOOPS, int(work) + 2 * LOOPS))
    code, ran, over = 3, 0, time.monotonic() + within
    try:
        if mutant is not None:
            file = copy / mutant.path
            patch(file, mutant.line, file.read_text(encoding="utf-8"))
        for item, following in zip_longest(items, items[1:]):
            if time.process_time() > work:
                break
            if time.monotonic() > over:
                code = 5
                break
            ran += 1
            failed = _Failed()
            item.config.pluginmanager.register(failed)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(failed)
            if failed.is_so:
                told.write_text(item.nodeid)
                code = 1
                break
        if code == 3:
            code = 0
            told.write_text(str(ran))
    except CannotPatch:
        code = 4
    except BaseException as error:  # noqa: BLE001  the edge of a process
        told.write_text(repr(error))
    finally:
        os._exit(code)


def _needs_postgres(item: pytest.Item) -> bool:
    called = getattr(item, "callspec", None)
    chosen = () if called is None else called.params.values()
    return "postgres" in getattr(item, "fixturenames", ()) or any(one == "postgres" for one in chosen)


class _Failed:
    is_so = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.is_so |= report.failed


def _ended(process: int, limit: float) -> str:
    over = time.monotonic() + limit
    while time.monotonic() < over:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return CODES.get(os.waitstatus_to_exitcode(status), "broken")
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "timeout"


def changed(text: bytes, mutant: Mutant) -> bytes:
    return text[: mutant.start] + mutant.after.encode() + text[mutant.start + len(mutant.before.encode()) :]


def mutants_of(path: Path) -> list[Mutant]:
    """All changes to one file, in the order of their places."""
    text = path.read_bytes()
    name = path.relative_to(REPOSITORY).as_posix()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    found: list[Mutant] = []
    tree = ast.parse(text)
    names = _names(tree)
    lines = text.decode().splitlines()

    def near(line: int) -> frozenset[str]:
        return frozenset(WORD.findall(" ".join(lines[max(0, line - 4) : line + 3])))

    for node, kind, after in _changes(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found.append(
            Mutant(
                name, node.lineno, kind, text[start:end].decode(), after, start, names[node.lineno], near(node.lineno)
            )
        )
    for pattern, kind in ((SQL_TERM, "sql_term"), (SQL_FIRST, "sql_first"), (SQL_BOUND, "sql_bound")):
        for match in pattern.finditer(text.decode()):
            after = {"sql_term": "", "sql_first": "WHERE "}.get(kind, BOUNDS.get(match.group(), ""))
            start = len(text.decode()[: match.start()].encode())
            line = 1 + text[:start].count(b"\n")
            found.append(Mutant(name, line, kind, match.group(), after, start, names[line], near(line)))
    return sorted(found, key=lambda one: (one.start, one.kind, one.after))


def _names(tree: ast.Module) -> defaultdict[int, tuple[str, ...]]:
    """For each line the functions and classes around it; for a constant's, the functions that use it too."""
    found: defaultdict[int, tuple[str, ...]] = defaultdict(tuple)
    uses: defaultdict[str, list[str]] = defaultdict(list)
    for node in ast.walk(tree):  # from the outermost
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] += (node.name,)
            if not isinstance(node, ast.ClassDef):
                for part in ast.walk(node):
                    if isinstance(part, ast.Name) and part.id.isupper():
                        uses[part.id].append(node.name)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] += (node.targets[0].id, *uses[node.targets[0].id])
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    alone = left_out(tree)
    for node in ast.walk(tree):
        if id(node) in alone:
            continue
        if isinstance(node, ast.stmt):
            yield from ((part, kind, after) for part, kind, after in _of_statement(node) if id(part) not in alone)
        elif isinstance(node, ast.expr) and id(node) not in inside:  # Python 3.11 does not tell the places in there
            yield from ((node, kind, after) for kind, after in _of_expression(node))


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    match node:
        case ast.If(test=test):
            yield test, "if", "False"
        case ast.Expr(ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign():
            yield node, "statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "statement", "pass"


def _of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left, [op], [right]):
            yield "comparison", f"({ast.unparse(ast.Compare(left, [FLIPPED[type(op)]()], [right]))})"
        case ast.BoolOp(op, values):
            yield "and_or", f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))})"
            for number in range(len(values)):
                kept = values[:number] + values[number + 1 :]
                yield "condition", f"({ast.unparse(kept[0] if len(kept) == 1 else ast.BoolOp(op, kept))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", f"({ast.unparse(operand)})"
        case ast.Constant(value) if type(value) is int:
            yield "constant", str(value + 1)
            yield "constant", f"({value - 1})"


if __name__ == "__main__":
    main()
