"""Puts a changed source into a module that is loaded: into its functions, or into the constants made from it."""

import ast
import gc
import sys
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType


class CannotPatch(Exception):
    """The change stands where a class is made, or in what runs when the module is loaded."""


def patch(file: Path, line: int, text: str) -> None:
    """Bring the change on that line into force in this process. Raises CannotPatch."""
    known = (one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == str(file))
    module = next(known, None) or import_module(_name(file))  # a repository is loaded when it is first used
    tree = ast.parse(text)
    statement = next(node for node in tree.body if node.lineno <= line <= (node.end_lineno or line))
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        _assign(module, statement)
    elif not _replace(file, compile(text, str(file), "exec"), line):
        raise CannotPatch


def _name(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[len(parts) - parts[::-1].index("src") :]).removesuffix(".__init__")


def _assign(module: ModuleType, statement: ast.Assign | ast.AnnAssign) -> None:
    """Give the name its new value wherever the old one was imported."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Name):
        raise CannotPatch
    old = vars(module).get(target.id)
    exec(compile(ast.Module([statement], []), str(module.__file__), "exec"), vars(module))  # noqa: S102  our own source
    new = vars(module)[target.id]
    for other in list(sys.modules.values()):
        if getattr(other, "__name__", "").startswith("lamplighter") and vars(other).get(target.id) is old:
            vars(other)[target.id] = new


def _replace(file: Path, module: CodeType, line: int) -> bool:
    """Give every function of the file its new code; false if the line is in none."""
    new = {(code.co_qualname, code.co_firstlineno): code for code in _codes(module)}
    found = False
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        old = function.__code__
        if old.co_filename != str(file):
            continue
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is None or len(code.co_freevars) != len(old.co_freevars):
            raise CannotPatch
        lines = {one for *_, one in code.co_lines() if one is not None}
        found |= min(lines) < line <= max(lines) or (line in lines and line != code.co_firstlineno)
        found |= any(inner in lines for inner in (line,)) and _is_one_line(code)
        function.__code__ = code
    return found


def _is_one_line(code: CodeType) -> bool:
    return len({one for *_, one in code.co_lines() if one is not None}) == 1


def _codes(code: CodeType) -> list[CodeType]:
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [*inner, *(two for one in inner for two in _codes(one))]
