"""Changes that are not tried, because no test of behaviour could or should notice them: each rule with its reason."""

import ast
import re
from collections.abc import Callable, Iterator

TOLD = re.compile(r"^(await )?(log\.get\(\)|crash_point\()")
BOUND = re.compile(r"^(limit|most|at_most|within|timeout|size|every|longest|width|indent)$|_(limit|most|timeout|size)$")
PROGRAMMING = {"TypeError", "AssertionError", "NotImplementedError"}
LONG = 20

RULES: dict[str, str] = {
    "told": "a log line is written for people; a crash point is there for tests",
    "types": "`assert_never`, TYPE_CHECKING and a TypeError for what the types exclude are never reached",
    "chosen": "a span or a most in a constant of its own is a choice: one more or less of it breaks no promise",
    "bound": "the default of a parameter that bounds (limit, most, within …) is a choice as well",
    "cut": "how long a text is that is shown or kept, in a slice of more than 20, is a choice as well",
    "exit": "a method that only shows the object (`__repr__`, `__str__`) or closes it for the garbage collector",
    "yielded": "`asyncio.sleep(0)` gives way to other tasks and changes nothing",
    "versions": "a branch on the Python version or the platform is not taken by the one that runs the tests",
}


def left_out(tree: ast.Module) -> dict[int, str]:
    """For each node (by its `id`) that is left alone, the name of its rule; everything below it is left alone too."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):
        for name, asked in _ASKED.items():
            for one in asked(node):
                for part in ast.walk(one):
                    found.setdefault(id(part), name)
    return found


def _told(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and TOLD.match(ast.unparse(node)):
        yield node


def _types(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
            yield node
        case ast.If(test=test, body=[ast.Raise(exc=ast.Call(func=ast.Name(id=name)))]) if name in PROGRAMMING:
            yield from (test, *node.body)
        case ast.Expr(ast.Call(func=ast.Name(id="assert_never"))):
            yield node
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name in PROGRAMMING:
            yield node


def _chosen(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper() and _is_amount(value):
            yield value
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None and _is_amount(value):
            if name.isupper() or BOUND.search(name):
                yield value


def _is_amount(value: ast.expr) -> bool:
    match value:
        case ast.Constant(number):
            return type(number) in {int, float}
        case ast.BinOp(left, ast.Mult() | ast.Pow() | ast.LShift(), right):
            return _is_amount(left) and _is_amount(right)
        case ast.Call(func=ast.Name(id="timedelta"), args=[], keywords=spans):
            return all(_is_amount(one.value) for one in spans)
    return False


def _bound(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.arguments):
        ordered = [*node.posonlyargs, *node.args]
        defaults = zip(ordered[len(ordered) - len(node.defaults) :], node.defaults, strict=True)
        for given, value in (*defaults, *zip(node.kwonlyargs, node.kw_defaults, strict=True)):
            if value is not None and BOUND.search(given.arg):
                yield value


def _cut(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Slice):
        for end in (node.lower, node.upper):
            inner = end.operand if isinstance(end, ast.UnaryOp) else end
            if isinstance(inner, ast.Constant) and isinstance(inner.value, int) and inner.value > LONG:
                yield inner


def _exit(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef) and node.name in {"__repr__", "__str__", "__del__"}:
        yield from node.body


def _yielded(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and ast.unparse(node) == "await asyncio.sleep(0)":
        yield node


def _versions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If) and re.search(r"\bsys\.(version_info|platform)\b", ast.unparse(node.test)):
        yield node


_ASKED: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    "told": _told, "types": _types, "chosen": _chosen, "bound": _bound, "cut": _cut, "exit": _exit,
    "yielded": _yielded, "versions": _versions,
}  # fmt: skip
