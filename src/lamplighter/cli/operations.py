"""Commands made from the table of operations: their arguments from the request's fields, their output from its answer.

A module of `cli` may give an operation its own way of showing the answer (`SHOWN`), or a command of its own, marked by
`carries_out`, where the command line offers more than the request's fields.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import click

from lamplighter.cli import output
from lamplighter.cli.base import CONTEXT, LampCommand, LampGroup, city, in_short, patient_city, remote
from lamplighter.cli.base import carries_out as carries_out  # noqa: PLC0414  the commands that use it use more of this module
from lamplighter.cli.completing import names
from lamplighter.cli.numbers import AnyWhole, Number, Whole
from lamplighter.kit import json_text
from lamplighter.kit.errors import UsageError
from lamplighter.kit.shapes import hints_of, to_json
from lamplighter.services.table import TABLE, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lamplighter.services.operation import Operation

Q = TypeVar("Q")
A = TypeVar("A")
Show = Callable[[Any, Any], None]
"""Prints an answer for a person; called with the answer and the request."""


def do(operation: "Operation[Q, A]", ask: Q, *, actor: str | None = None, here: bool = False) -> A:
    """Have the operation done in the city that this command is about; `actor` names another actor than usual.

    `here`: the daemon was asked already and did not answer.
    """
    there = remote()
    if there is not None:
        if actor is not None:
            raise UsageError("In a city on another machine the token says who acts.", hint="Leave --actor out.")
        return there.do(operation, ask)
    from lamplighter.app.operations import DirectOperations

    opened = patient_city() if operation.patient else city()
    return DirectOperations(opened).do(operation, ask, as_name=actor, here=here)


def follow(operation: "Operation[Q, A]", ask: Q, show: Callable[[A], None]) -> None:
    """Call `show` with each part of a stream as it comes, until the stream ends."""
    there = remote()
    if there is not None:
        for part in there.follow(operation, ask):
            show(part)
        return
    from lamplighter.app.operations import DirectOperations

    DirectOperations(city()).follow(operation, ask, show)


def operation_of(command: click.Command) -> str | None:
    return getattr(command.callback, "operation", None)


class Subject(LampGroup):
    """The commands about one subject: those written by hand, and one for each further operation of the subject."""

    def __init__(self, subject: str, help_text: str, shown: Mapping[str, Show] | None = None) -> None:
        """`shown` maps verbs to their own way of showing the answer."""
        super().__init__(help=help_text, context_settings=CONTEXT, no_args_is_help=True)
        self._subject = subject
        self._shown = shown or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(verb for verb in verbs_of(self._subject) if verb not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        written = super().get_command(ctx, cmd_name)
        if written is not None or f"{self._subject}.{cmd_name}" not in TABLE:
            return written
        return command_of(find(f"{self._subject}.{cmd_name}"), self._shown.get(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, in_short(command.help or "")))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def verbs_of(subject: str) -> list[str]:
    """The verbs of a subject in the table."""
    return [name.partition(".")[2] for name in TABLE if name.partition(".")[0] == subject]


def command_of(operation: "Operation[Any, Any]", show: Show | None = None) -> click.Command:
    request = operation.request

    def callback(**given: Any) -> None:
        ask = request(**_values(request, given))

        def print_one(answer: Any) -> None:
            if output.wants_json():
                click.echo(json.dumps(to_json(answer)))
            else:
                (show or plainly)(answer, ask)
            searched_to = getattr(answer, "searched_to", None)
            if searched_to is not None:
                click.echo(f"Older ones were not looked at: go on with --before {searched_to}", err=True)

        if operation.kind.value == "stream":
            follow(operation, ask, print_one)
        else:
            print_one(do(operation, ask))

    callback.operation = operation.name  # type: ignore[attr-defined]  # read by `operation_of`
    return LampCommand(
        name=operation.words[-1],
        callback=callback,
        params=[_parameter(one, hints_of(request)[one.name]) for one in fields(request)],
        help=request.__doc__,
        context_settings=CONTEXT,
    )


def plainly(answer: Any, _ask: Any) -> None:
    """Show an answer without a way of its own: a table for a list, a line for each field of one thing."""
    if isinstance(answer, list):
        rows = [_cells(one) for one in answer]
        columns = {key.replace("_", " ").upper(): key for key in (rows[0] if rows else {})}
        output.table(rows, columns, empty="None.")
    elif is_dataclass(answer):
        output.fields({}, {key.replace("_", " ").capitalize(): one for key, one in _cells(answer).items()})
    else:
        click.echo(str(answer))


def _cells(record: Any) -> dict[str, Any]:
    return {one.name: _cell(getattr(record, one.name)) for one in fields(record)}


def _cell(value: Any) -> Any:
    """Yes or no for a boolean, and a part that is a record by its first two fields; the table words the rest."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_dataclass(value):
        return " ".join(str(getattr(value, one.name)) for one in fields(value)[:2])
    if isinstance(value, (list, tuple)):
        return [_cell(one) for one in value]
    return value


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _parameter(one: "Field[Any]", hint: Any) -> click.Parameter:
    facts = one.metadata
    needed = one.default is MISSING and one.default_factory is MISSING
    kind, many = _kind(hint)
    complete = names(facts["names"]) if facts.get("names") else None
    if facts.get("positional"):
        metavar = facts.get("metavar") or one.name.upper()
        argument = click.Argument(
            [one.name],
            required=needed,
            nargs=-1 if many or facts.get("rest") else 1,
            type=kind,
            metavar=metavar if needed else f"[{metavar}]",
            shell_complete=complete,
        )
        argument.meaning = facts.get("help", "")  # type: ignore[attr-defined]  # read by `meaning_of`
        return argument
    usual = None if needed or one.default is MISSING else one.default
    if kind is click.BOOL:
        return click.Option(
            [f"--{_flag(one.name)}", one.name], is_flag=True, default=bool(usual), help=facts.get("help")
        )
    if facts.get("least") is not None:
        bounded = Number if kind is click.FLOAT else Whole
        kind = bounded(facts["least"], facts["most"])
    numbered = isinstance(usual, (int, float))
    shown: dict[str, Any] = {"default": usual} if numbered else {}  # a default of None would pass for a value
    return click.Option(
        [f"--{_flag(one.name)}", one.name],
        required=needed,
        multiple=many,
        type=kind,
        show_default=numbered,
        metavar=facts.get("metavar"),
        help=facts.get("help"),
        shell_complete=complete,
        **shown,
    )


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _kind(hint: Any) -> tuple[Any, bool]:
    """The click type of a field, and whether it may be given several times."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _kind(next(one for one in get_args(hint) if one is not NoneType))
    if origin is not None and issubclass(origin, Mapping):
        return _Json(), False
    if origin is not None and issubclass(origin, Sequence):
        return _kind((get_args(hint) or (str,))[0])[0], True
    if isinstance(hint, type) and issubclass(hint, Enum):
        return click.Choice([str(one.value) for one in hint]), False
    return {int: AnyWhole(), float: click.FLOAT, bool: click.BOOL}.get(hint, click.STRING), False


class _Json(click.ParamType[Any]):
    name = "json"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            found = json_text.parse(value)
        except ValueError as error:
            raise UsageError(f"This is not JSON that can be used: {error}.", hint="Pass an object.") from error
        if not isinstance(found, dict):
            raise UsageError("This is not a JSON object.", hint='Such as \'{"branch": "main"}\'.')
        return found


def _values(request: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as the request's fields take it; what was left out keeps its default."""
    hints, values = hints_of(request), {}
    for one in fields(request):
        value = " ".join(given[one.name]) if one.metadata.get("rest") else given[one.name]
        if value is None or (value == () and one.default is not MISSING):
            continue
        enumeration = _enumeration(hints[one.name])
        values[one.name] = enumeration(value) if enumeration is not None else value
    return values


def _enumeration(hint: Any) -> type[Enum] | None:
    for one in get_args(hint) or (hint,):
        if isinstance(one, type) and issubclass(one, Enum):
            return one
    return None
