"""Strict templates for prompts, names and commands, in the syntax of Go's templates.

Fields, pipelines, `if`/`else if`/`else`, `range`, `with`, variables, `define` and `template`, comments and trimming.
"""

import json
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, assert_never

from lamplighter.kit.nearest import did_you_mean
from lamplighter.kit.text_parse import (
    Chain,
    Const,
    Function,
    If,
    Node,
    Operand,
    Partial,
    Pipe,
    Print,
    Range,
    Template,
    TemplateError,
    Text,
    With,
    parse,
)

__all__ = ["Missing", "Template", "TemplateError", "expand", "fields_of", "parse", "render"]

Functions = Mapping[str, Callable[..., object]]
Names = ChainMap[str, object]
_NOTHING: Functions = MappingProxyType({})
_DEEPEST = 50


class Missing(StrEnum):
    """How a missing field is treated."""

    ERROR = "error"
    EMPTY = "empty"


def render(
    template: Template,
    data: Mapping[str, object],
    *,
    functions: Functions = _NOTHING,
    partials: Iterable[Template] = (),
    missing: Missing = Missing.ERROR,
) -> str:
    """Raises TemplateError, with file and line. The template's own `define`s take precedence over the partials'."""
    defines = {name: (part.file, nodes) for part in (*partials, template) for name, nodes in part.defines.items()}
    for part in partials:
        defines.setdefault(part.file.rpartition("/")[2], (part.file, part.nodes))
    return _Render(template.file, functions, defines, missing).run(template.nodes, data)


def expand(text: str, data: Mapping[str, object], *, file: str = "template", functions: Functions = _NOTHING) -> str:
    """Parse and render a short template; text without an action is returned as it is."""
    return render(parse(text, file=file), data, functions=functions) if "{{" in text else text


def fields_of(template: Template) -> frozenset[str]:
    """The top-level fields of the data that a template may use; bodies of `with` and `range` are not searched."""
    return frozenset(_fields([*template.nodes, *(node for body in template.defines.values() for node in body)]))


def _fields(nodes: Iterable[Node]) -> Iterable[str]:
    for node in nodes:
        match node:
            case Text():
                pass
            case Print(pipe):
                yield from _pipe_fields(pipe)
            case If(pipe, body, otherwise):
                yield from _pipe_fields(pipe)
                yield from _fields([*body, *otherwise])
            case With(pipe, _, otherwise) | Range(pipe, _, otherwise):
                # Inside the body the dot is another value, so only the fields used outside of it are known.
                yield from _pipe_fields(pipe)
                yield from _fields(otherwise)
            case Partial(_, pipe, _):
                yield from _pipe_fields(pipe) if pipe is not None else ()
            case _:
                assert_never(node)


def _pipe_fields(pipe: Pipe) -> Iterable[str]:
    for command in pipe.commands:
        for operand in command:
            if isinstance(operand, Pipe):
                yield from _pipe_fields(operand)
            elif isinstance(operand, Chain) and operand.variable in {None, "$"} and operand.fields:
                yield operand.fields[0]


@dataclass
class _Render:
    file: str
    functions: Functions
    defines: Mapping[str, tuple[str, tuple[Node, ...]]]
    missing: Missing
    depth: int = 0

    def run(self, nodes: Iterable[Node], data: object) -> str:
        out: list[str] = []
        self._nodes(nodes, data, ChainMap({"$": data}), out)
        return "".join(out)

    def _nodes(self, nodes: Iterable[Node], dot: object, names: Names, out: list[str]) -> None:
        for node in nodes:
            match node:
                case Text(text):
                    out.append(text)
                case Print(pipe):
                    value = self._pipe(pipe, dot, names)
                    out.append("" if pipe.variables else shown(value))
                case If(pipe, body, otherwise):
                    inner = names.new_child()
                    self._nodes(body if self._pipe(pipe, dot, inner) else otherwise, dot, inner, out)
                case With(pipe, body, otherwise):
                    inner = names.new_child()
                    value = self._pipe(pipe, dot, inner)
                    self._nodes(body if value else otherwise, value or dot, inner, out)
                case Range():
                    self._range(node, dot, names, out)
                case Partial():
                    self._partial(node, dot, names, out)
                case _:
                    assert_never(node)

    def _range(self, node: Range, dot: object, names: Names, out: list[str]) -> None:
        plain = Pipe(node.pipe.commands, node.pipe.line)
        value = self._pipe(plain, dot, names)
        items = self._items(value, node.pipe.line)
        for key, item in items:
            given = (key, item) if len(node.pipe.variables) == 2 else (item,)
            self._nodes(node.body, item, names.new_child(dict(zip(node.pipe.variables, given, strict=False))), out)
        if not items:
            self._nodes(node.otherwise, dot, names, out)

    def _items(self, value: object, line: int) -> list[tuple[object, object]]:
        if value is None or value == "":
            return []
        if isinstance(value, Mapping):
            return sorted(value.items())
        if isinstance(value, Sequence) and not isinstance(value, str):
            return list(enumerate(value))
        raise TemplateError(self.file, line, f"`range` goes over lists and tables, not over `{shown(value)[:40]}`")

    def _partial(self, node: Partial, dot: object, names: Names, out: list[str]) -> None:
        if node.name not in self.defines:
            near = did_you_mean(node.name, self.defines)
            raise TemplateError(self.file, node.line, f"there is no template `{node.name}`{near}")
        if self.depth >= _DEEPEST:
            raise TemplateError(self.file, node.line, f"template `{node.name}` calls itself without an end")
        file, body = self.defines[node.name]
        data = self._pipe(node.pipe, dot, names) if node.pipe is not None else None
        inner = _Render(file, self.functions, self.defines, self.missing, self.depth + 1)
        out.append(inner.run(body, data))

    def _pipe(self, pipe: Pipe, dot: object, names: Names) -> object:
        value: object = None
        for index, command in enumerate(pipe.commands):
            value = self._command(command, (value,) if index else (), dot, names, pipe.line)
        for name in pipe.variables:
            scope = names.maps[0] if pipe.declares else next((scope for scope in names.maps if name in scope), None)
            if scope is None:
                raise TemplateError(self.file, pipe.line, f"variable `{name}` is not declared; use `:=` first")
            scope[name] = value
        return value

    def _command(
        self, command: tuple[Operand, ...], piped: tuple[object, ...], dot: object, names: Names, line: int
    ) -> object:
        first, *rest = command
        if not isinstance(first, Function):
            if piped:
                raise TemplateError(self.file, line, "only a function can follow `|`")
            return self._value(first, dot, names, line)
        if first.name in {"and", "or"}:
            return self._until([*rest, *map(Const, piped)], dot, names, line, stop=first.name == "or")
        args = [self._value(operand, dot, names, line) for operand in rest]
        return self._called(first.name, [*args, *piped], line)

    def _until(self, operands: Sequence[Operand], dot: object, names: Names, line: int, *, stop: bool) -> object:
        """`or` stops at the first true value, `and` at the first that is not."""
        value: object = None
        for operand in operands:
            value = self._value(operand, dot, names, line)
            if bool(value) is stop:
                break
        return value

    def _value(self, operand: Operand, dot: object, names: Names, line: int) -> object:
        match operand:
            case Const(value):
                return value
            case Pipe():
                return self._pipe(operand, dot, names)
            case Function(name):
                return self._called(name, [], line)
            case Chain(variable, fields):
                return self._chain(variable, fields, dot, names, line)
            case _:
                assert_never(operand)

    def _chain(self, variable: str | None, fields: tuple[str, ...], dot: object, names: Names, line: int) -> object:
        value = dot
        if variable is not None:
            if variable not in names:
                raise TemplateError(
                    self.file, line, f"variable `{variable}` is not declared{did_you_mean(variable, names)}"
                )
            value = names[variable]
        for name in fields:
            value = self._field(value, name, line)
        return value

    def _field(self, value: object, name: str, line: int) -> object:
        if isinstance(value, Mapping) and name in value:
            return value[name]
        if self.missing is Missing.EMPTY and (value is None or value == "" or isinstance(value, Mapping)):
            return ""
        known = [key for key in value if isinstance(key, str)] if isinstance(value, Mapping) else []
        raise TemplateError(self.file, line, f"there is no `.{name}`{did_you_mean(name, known)}")

    def _called(self, name: str, args: list[object], line: int) -> object:
        function = self.functions.get(name) or _BUILT_IN.get(name)
        if function is None:
            near = did_you_mean(name, [*self.functions, *_BUILT_IN, "and", "or"])
            raise TemplateError(self.file, line, f"`{name}` is not a function{near}")
        try:
            return function(*args)
        except (TypeError, ValueError, LookupError) as error:
            raise TemplateError(self.file, line, f"`{name}` failed: {error}") from error


def shown(value: object) -> str:
    """A value as a template prints it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list() | tuple():
            return f"[{' '.join(map(shown, value))}]"
        case Mapping():
            return f"map[{' '.join(f'{key}:{shown(item)}' for key, item in sorted(value.items()))}]"
        case _:
            return str(value)


def _index(value: Any, *keys: Any) -> object:
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else value[key]
    return value


def _printf(form: str, *args: object) -> str:
    """The verbs `%s`, `%v`, `%d`, `%q` and `%%`."""
    rest = list(args)
    out, _, tail = form.partition("%")
    while tail:
        verb, tail = tail[0], tail[1:]
        out += "%" if verb == "%" else _VERBS[verb](rest.pop(0))
        text, _, tail = tail.partition("%")
        out += text
    return out


def _whole(value: object) -> str:
    if not isinstance(value, int):
        raise TypeError(f"`%d` takes a whole number, not `{shown(value)}`")
    return str(value)


_VERBS: Mapping[str, Callable[[object], str]] = {
    "s": shown,
    "v": shown,
    "d": _whole,
    "q": lambda value: json.dumps(shown(value), ensure_ascii=False),
}

_BUILT_IN: Mapping[str, Callable[..., object]] = {
    "not": lambda value: not value,
    "eq": lambda first, *others: any(first == other for other in others),
    "ne": lambda first, second: first != second,
    "lt": lambda first, second: first < second,
    "le": lambda first, second: first <= second,
    "gt": lambda first, second: first > second,
    "ge": lambda first, second: first >= second,
    "len": len,
    "index": _index,
    "print": lambda *values: "".join(map(shown, values)),
    "println": lambda *values: " ".join(map(shown, values)) + "\n",
    "printf": _printf,
}
