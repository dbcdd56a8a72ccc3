"""Small changes to the code, one at a time: which of them does no test notice?

Changes the named files in a temporary copy of the repository and runs the tests of their folder on each change. Prints
a line of JSON for each change and one for all of them. The same seed makes the same choice of changes.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/lamplighter")
COPIED = ("src", "tests", "docs", "tools", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
TESTS = {
    "kit": "tests/unit/kit tests/property",
    "domain": "tests/unit tests/property",
    "store": "tests/unit/store tests/contract tests/services",
    "services": "tests/services tests/contract",
    "daemon": "tests/unit/daemon tests/daemon",
    "adapters": "tests/adapters tests/unit/adapters tests/unit/sessions tests/contract tests/files",
    "web": "tests/web",
    "mcp": "tests/mcp",
}
OTHER_TESTS = "tests/cli"
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
UNTOLD = re.compile(r"^(await )?(log\.get\(\)|crash_point\()")  # written for people, or there for tests: left alone
SQL_TERM = re.compile(r"\bAND (?:[\w.]+ (?:=|<>|<=|>=|<|>) (?::\w+|'\w+'|\d+)|[\w.]+ IS (?:NOT )?NULL)")
SQL_FIRST = re.compile(r"\bWHERE [\w.]+ = :\w+ AND ")


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int  # where in the file's bytes `before` begins


def main() -> None:
    asked = _arguments()
    kinds = asked.kinds.split(",") if asked.kinds else []
    mutants = [
        mutant for path in _files(asked.paths) for mutant in mutants_of(path) if not kinds or mutant.kind in kinds
    ]
    if 0 < asked.most < len(mutants):
        chosen = set(random.Random(asked.seed).sample(range(len(mutants)), asked.most))  # noqa: S311  a choice to repeat
        mutants = [mutant for number, mutant in enumerate(mutants) if number in chosen]
    with tempfile.TemporaryDirectory(prefix="mutants-") as made:
        copy = Path(made) / "repository"
        _copy(copy)
        _try_all(copy, mutants, asked)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", help="files or folders below src/lamplighter")
    parser.add_argument("--tests", help="what pytest is given instead of the tests of the folder")
    parser.add_argument("--most", type=int, default=0, help="so many of the changes, chosen by the seed; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="only changes of these kinds, joined by commas")
    parser.add_argument("--limit", type=float, default=0, help="seconds for each; else three times the unchanged run")
    return parser.parse_args()


def _files(paths: list[str]) -> Iterator[Path]:
    for path in paths:
        found = REPOSITORY / path
        yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


def _copy(to: Path) -> None:
    to.mkdir()
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, to / name)


def _try_all(copy: Path, mutants: list[Mutant], asked: argparse.Namespace) -> None:
    limits: dict[str, float] = {}
    noticed = 0
    for mutant in mutants:
        tests = asked.tests or TESTS.get(Path(mutant.path).relative_to(PACKAGE).parts[0], OTHER_TESTS)
        if tests not in limits:
            outcome, took = _tested(copy, tests, 3600)
            if outcome != "survived":
                sys.exit(f"The tests fail without any change: {tests}")
            limits[tests] = asked.limit or max(30.0, 3 * took)
        file = copy / mutant.path
        kept = file.read_bytes()
        file.write_bytes(changed(kept, mutant))
        outcome, took = _tested(copy, tests, limits[tests])
        file.write_bytes(kept)
        noticed += outcome != "survived"
        print(json.dumps(asdict(mutant) | {"outcome": outcome, "seconds": round(took, 1)}), flush=True)
    share = round(noticed / len(mutants), 3) if mutants else None
    print(json.dumps({"mutants": len(mutants), "noticed": noticed, "share": share, "seed": asked.seed}))


def _tested(copy: Path, tests: str, limit: float) -> tuple[str, float]:
    """`survived` when every test passes; and how long that took. No process of the tests outlives the limit."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests.split()]
    env = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    began, quiet = time.monotonic(), subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=copy, env=env, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        outcome = {0: "survived", 1: "failed"}.get(process.wait(limit), "broken")
    except subprocess.TimeoutExpired:
        outcome = "timeout"
        os.killpg(process.pid, signal.SIGINT)  # first this way: the tests' own server is stopped then
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return outcome, time.monotonic() - began


def changed(text: bytes, mutant: Mutant) -> bytes:
    return text[: mutant.start] + mutant.after.encode() + text[mutant.start + len(mutant.before.encode()) :]


def mutants_of(path: Path) -> list[Mutant]:
    """All changes to one file, in the order of their places."""
    text = path.read_bytes()
    name = path.relative_to(REPOSITORY).as_posix()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    found: list[Mutant] = []
    for node, kind, after in _changes(ast.parse(text)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found.append(Mutant(name, node.lineno, kind, text[start:end].decode(), after, start))
    for pattern, kind, after in ((SQL_TERM, "sql_term", ""), (SQL_FIRST, "sql_first", "WHERE ")):
        for match in pattern.finditer(text.decode()):
            start = len(text.decode()[: match.start()].encode())
            found.append(Mutant(name, 1 + text[:start].count(b"\n"), kind, match.group(), after, start))
    return sorted(found, key=lambda one: (one.start, one.kind, one.after))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            yield from _of_statement(node)
        elif isinstance(node, ast.expr) and id(node) not in inside:  # Python 3.11 does not tell the places in there
            yield from ((node, kind, after) for kind, after in _of_expression(node))


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    match node:
        case ast.If(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield test, "if", "False"
        case ast.Expr(ast.Call() | ast.Await()) if UNTOLD.match(ast.unparse(node)):
            return
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
