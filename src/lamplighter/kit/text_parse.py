"""Parses template text into nodes: actions, pipelines and blocks with their lines; errors name file and line."""

import json
import re
from collections.abc import Iterator
from dataclasses import field

from lamplighter.kit.errors import Kind, LampError
from lamplighter.kit.records import record


class TemplateError(LampError):
    kind = Kind.USAGE

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}: line {line}: {message}")
        self.file, self.line, self.reason = file, line, message


@record
class Const:
    value: object


@record
class Chain:
    """`.A.B` from the dot, or `$x.A` from a variable."""

    variable: str | None
    fields: tuple[str, ...]


@record
class Function:
    name: str


@record
class Pipe:
    """Commands joined by `|`; the result is assigned to `variables`, which it declares if `declares` is set."""

    commands: tuple[tuple["Operand", ...], ...]
    line: int
    variables: tuple[str, ...] = ()
    declares: bool = True


Operand = Const | Chain | Function | Pipe


@record
class Text:
    text: str


@record
class Print:
    pipe: Pipe


@record
class If:
    pipe: Pipe
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@record
class With:
    pipe: Pipe
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@record
class Range:
    pipe: Pipe
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...]


@record
class Partial:
    name: str
    pipe: Pipe | None
    line: int


Node = Text | Print | If | With | Range | Partial


@record
class Template:
    file: str
    nodes: tuple[Node, ...]
    defines: dict[str, tuple[Node, ...]] = field(default_factory=dict)


def parse(text: str, *, file: str = "template") -> Template:
    """Raises TemplateError."""
    try:
        return _Parser(text, file).run()
    except RecursionError:
        raise TemplateError(file, 1, "is nested too deeply to be read") from None


_TOKEN = re.compile(
    r"""\s+
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<raw>`[^`]*`)
    | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
    | (?P<variable>\$[A-Za-z_0-9]*(?:\.[A-Za-z_]\w*)*)
    | (?P<chain>(?:\.[A-Za-z_]\w*)+|\.(?![\w.]))
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark>:=|[=|(),])""",
    re.VERBOSE,
)
_OPEN = re.compile(r"\{\{(-(?=\s))?")
_CLOSE = re.compile(r"(\s-)?\}\}")
_COMMENT = re.compile(r"\s*/\*.*?\*/(\s-)?\s*\}\}", re.DOTALL)
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_WORDS = {"true": True, "false": False, "nil": None}


@record
class _Action:
    source: str
    line: int

    @property
    def word(self) -> str:
        match = re.match(r"[A-Za-z_]\w*", self.source)
        return match[0] if match else ""

    @property
    def rest(self) -> str:
        return self.source[len(self.word) :].strip()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._pieces = list(self._split(text))
        self._next = 0
        self._defines: dict[str, tuple[Node, ...]] = {}

    def run(self) -> Template:
        nodes, end = self._block(None)
        if end is not None:
            raise self._error(end.line, f"`{{{{{end.word}}}}}` closes nothing")
        return Template(self._file, nodes, self._defines)

    def _block(self, opener: _Action | None) -> tuple[tuple[Node, ...], _Action | None]:
        """Nodes up to the `end` or `else` that belongs to `opener`, and that action."""
        nodes: list[Node] = []
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            self._next += 1
            if isinstance(piece, Text):
                nodes.append(piece)
            elif piece.word in {"end", "else"}:
                return tuple(nodes), piece
            elif (node := self._node(piece)) is not None:
                nodes.append(node)
        if opener is not None:
            raise self._error(opener.line, f"`{{{{{opener.word}}}}}` has no `{{{{end}}}}`")
        return tuple(nodes), None

    def _node(self, action: _Action) -> Node | None:
        if action.word in {"if", "with", "range"}:
            return self._branch(action)
        if action.word == "define":
            self._defines[self._name(action)] = self._defined(action)
            return None
        if action.word == "block":
            name, rest = self._named(action)
            self._defines.setdefault(name, self._defined(action))
            return Partial(name, self._pipe(rest, action.line) if rest else None, action.line)
        if action.word == "template":
            name, rest = self._named(action)
            return Partial(name, self._pipe(rest, action.line) if rest else None, action.line)
        return Print(self._pipe(action.source, action.line))

    def _defined(self, action: _Action) -> tuple[Node, ...]:
        body, end = self._block(action)
        if end is not None and end.word == "else":
            raise self._error(end.line, f"`{{{{{action.word}}}}}` takes no `{{{{else}}}}`")
        return body

    def _branch(self, action: _Action) -> If | With | Range:
        if not action.rest:
            raise self._error(action.line, f"`{action.word}` needs a value")
        pipe = self._pipe(action.rest, action.line)
        body, end = self._block(action)
        otherwise: tuple[Node, ...] = ()
        if end is not None and end.word == "else":
            otherwise = self._otherwise(action, end)
        if action.word == "if":
            return If(pipe, body, otherwise)
        return (With if action.word == "with" else Range)(pipe, body, otherwise)

    def _otherwise(self, opener: _Action, found: _Action) -> tuple[Node, ...]:
        """The nodes after `else`; `else if` is a branch of its own that shares the `end`."""
        if found.rest:
            inner = _Action(found.rest, found.line)
            if inner.word not in {"if", "with"} or opener.word == "range":
                raise self._error(found.line, f"`else {found.rest}` is not known here; write `else if …` or `else`")
            return (self._branch(inner),)
        body, end = self._block(opener)
        if end is not None and end.word == "else":
            raise self._error(end.line, "a second `{{else}}`")
        return body

    def _name(self, action: _Action) -> str:
        name, rest = self._named(action)
        if rest:
            raise self._error(action.line, f"`{action.word}` takes one name in quotes")
        return name

    def _named(self, action: _Action) -> tuple[str, str]:
        match = _QUOTED.match(action.rest)
        if match is None:
            raise self._error(action.line, f"`{action.word}` needs a name in quotes")
        return self._string(match[0], action.line), action.rest[match.end() :].strip()

    def _pipe(self, source: str, line: int) -> Pipe:
        tokens = list(self._tokens(source, line))
        pipe, rest = self._pipeline(tokens, line)
        if rest:
            raise self._error(line, f"`{rest[0][1]}` is out of place in `{source.strip()}`")
        return pipe

    def _pipeline(self, tokens: list[tuple[str, str]], line: int) -> tuple[Pipe, list[tuple[str, str]]]:
        variables, declares, tokens = self._declaration(tokens)
        commands: list[tuple[Operand, ...]] = []
        while True:
            command, tokens = self._command(tokens, line)
            commands.append(command)
            if not tokens or tokens[0] != ("mark", "|"):
                return Pipe(tuple(commands), line, variables, declares), tokens
            tokens = tokens[1:]

    @staticmethod
    def _declaration(tokens: list[tuple[str, str]]) -> tuple[tuple[str, ...], bool, list[tuple[str, str]]]:
        kinds = [kind if kind != "mark" else text for kind, text in tokens[:4]]
        if kinds[:2] in (["variable", ":="], ["variable", "="]):
            return (tokens[0][1],), kinds[1] == ":=", tokens[2:]
        if kinds == ["variable", ",", "variable", ":="]:
            return (tokens[0][1], tokens[2][1]), True, tokens[4:]
        return (), True, tokens

    def _command(self, tokens: list[tuple[str, str]], line: int) -> tuple[tuple[Operand, ...], list[tuple[str, str]]]:
        operands: list[Operand] = []
        while tokens and tokens[0] not in {("mark", "|"), ("mark", ")")}:
            kind, text = tokens[0]
            if (kind, text) == ("mark", "("):
                inner, tokens = self._pipeline(tokens[1:], line)
                if not tokens or tokens[0] != ("mark", ")"):
                    raise self._error(line, "a `(` is not closed")
                operands.append(inner)
            else:
                operands.append(self._operand(kind, text, line))
            tokens = tokens[1:]
        if not operands:
            raise self._error(line, "a value is missing")
        if len(operands) > 1 and not isinstance(operands[0], Function):
            raise self._error(line, "only a function takes arguments")
        return tuple(operands), tokens

    def _operand(self, kind: str, text: str, line: int) -> Operand:
        match kind:
            case "string" | "raw":
                return Const(self._string(text, line))
            case "number":
                return Const(float(text) if "." in text else int(text))
            case "variable":
                name, *fields = text.split(".")
                return Chain(name, tuple(fields))
            case "chain":
                return Chain(None, tuple(part for part in text.split(".") if part))
            case "word":
                return Const(_WORDS[text]) if text in _WORDS else Function(text)
            case _:
                raise self._error(line, f"`{text}` is out of place")

    def _string(self, text: str, line: int) -> str:
        if text[0] == "`":
            return text[1:-1]
        try:
            value: str = json.loads(text, strict=False)
        except ValueError:
            raise self._error(line, f"{text} is not a text that can be read") from None
        return value

    def _tokens(self, source: str, line: int) -> Iterator[tuple[str, str]]:
        position = 0
        while position < len(source):
            match = _TOKEN.match(source, position)
            if match is None:
                raise self._error(line, f"`{source[position : position + 20].strip()}` cannot be read")
            if match.lastgroup:
                yield match.lastgroup, match[0]
            position = match.end()

    def _split(self, text: str) -> Iterator[Text | _Action]:
        """Text and actions in turn, white space trimmed where a dash asks for it; comments are dropped."""
        position, line, trim = 0, 1, False
        while (match := _OPEN.search(text, position)) is not None:
            before = text[position : match.start()]
            yield from _trimmed(before, left=trim, right=match[1] is not None)
            line += before.count("\n")
            end, trim = self._end_of(text, match.end(), line)
            source = text[match.end() : end]
            closed = text.index("}}", end) + 2
            if not source.lstrip().startswith("/*"):
                if not source.strip():
                    raise self._error(line, "an action is empty")
                yield _Action(source.strip(), line)
            line += text.count("\n", match.start(), closed)
            position = closed
        yield from _trimmed(text[position:], left=trim, right=False)

    def _end_of(self, text: str, start: int, line: int) -> tuple[int, bool]:
        """Where the inside of an action ends, and whether its close trims what follows."""
        comment = _COMMENT.match(text, start)
        if comment is not None:
            return text.index("*/", start) + 2, comment[1] is not None
        position = start
        while True:
            close = _CLOSE.search(text, position)
            if close is None:
                raise self._error(line, "`{{` is not closed")
            quoted = _QUOTED.search(text, position)
            if quoted is None or quoted.start() > close.start():
                return close.start(), close[1] is not None
            position = quoted.end()

    def _error(self, line: int, message: str) -> TemplateError:
        return TemplateError(self._file, line, message)


def _trimmed(text: str, *, left: bool, right: bool) -> Iterator[Text]:
    text = text.lstrip() if left else text
    text = text.rstrip() if right else text
    if text:
        yield Text(text)
