"""The table of operations is whole: each has its command, its answer type, its right and its line in the reference.

And nothing is asked of the product past the table: commands, tools and routes come from it.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import click
import pytest
from starlette.routing import Route

from lamplighter.cli.main import root
from lamplighter.cli.operations import operation_of
from lamplighter.domain.access import RIGHTS, Role, Verb
from lamplighter.kit.shapes import key_of, schema_of
from lamplighter.mcp.tools import tools
from lamplighter.services import table
from lamplighter.services.city_operations import CityOperations
from lamplighter.services.operation import ROOT, Operation
from lamplighter.web import api
from lamplighter.web.server import OPEN_PATHS, Surface, build

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"

EXEMPT = {
    "init": "makes a city: before it there is none that could be asked",
    "up": "is the city's process in the foreground",
    "start": "starts processes: where nothing runs, nobody could be asked to",
    "stop": "ends the process that would carry it out",
    "restart": "ends the process that would carry it out, and starts another",
    "context": "keeps addresses and tokens of cities on other machines in a file of this one",
    "daemon": "each of its commands is about the city's process: starting, ending or installing it, or its log",
    "worker": "is a process of the city",
    "mcp": "is a process that offers the tools",
    "store": "changes the database before anything can read it",
    "completion": "prints a script for the shell; it knows no city",
    "restore": "makes a city from a file: before it there is none that could be asked",
    "version": "says which program this is; it knows no city",
}
"""Commands, or groups of them, that carry out no operation, with the reason of each."""
MOST_EXEMPT = 13


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        elif command is not None:
            yield (*path, name), command


@cache
def every_command() -> dict[tuple[str, ...], click.Command]:
    return dict(commands(root))


@cache
def headings() -> set[str]:
    return set(
        re.findall(r"^## `lamp ([a-z -]+?)(?: [\[A-Z].*)?`$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    )


def parts_of(answer: Any) -> list[Any]:
    """The type itself, what a list is made of, or the kinds of which the answer is one."""
    if get_origin(answer) in (list, Union, UnionType):
        return [part for one in get_args(answer) for part in parts_of(one)]
    return [answer]


@pytest.fixture(params=list(table.TABLE))
def operation(request: pytest.FixtureRequest) -> Operation[Any, Any]:
    return table.find(request.param)


def test_it_is_found_under_its_own_name(request: pytest.FixtureRequest, operation: Operation[Any, Any]) -> None:
    assert operation.name == request.node.callspec.params["operation"]
    assert re.fullmatch(r"[a-z]+\.[a-z_-]+", operation.name)


def test_its_command_exists_and_carries_it_out(operation: Operation[Any, Any]) -> None:
    command = every_command().get(operation.words)
    assert command is not None, f"`lamp {' '.join(operation.words)}` does not exist"
    assert operation_of(command) == operation.name


def test_it_has_a_line_in_the_reference_of_commands(operation: Operation[Any, Any]) -> None:
    assert " ".join(operation.words) in headings()


def test_its_request_is_a_record_that_says_in_a_sentence_what_it_does(operation: Operation[Any, Any]) -> None:
    for request in {operation.request, operation.fields_of}:
        assert is_dataclass(request)
        made_up = f"{request.__name__}("  # how the docstring begins that a dataclass gets by itself
        assert not (request.__doc__ or made_up).startswith(made_up), f"{request} has no docstring of its own"
    assert operation.summary.endswith((".", "`")), operation.summary


def test_each_argument_says_what_it_means(operation: Operation[Any, Any]) -> None:
    silent = [one.name for one in fields(operation.fields_of) if not one.metadata.get("help")]
    assert silent == []


def test_its_answer_is_a_record_a_list_of_records_or_nothing(operation: Operation[Any, Any]) -> None:
    if operation.answer is None:
        return
    assert all(is_dataclass(part) for part in parts_of(operation.answer)), operation.answer
    assert schema_of(operation.answer)


OF_OWNERS = {Verb.WRITE_MEMBERS, Verb.WRITE_ORGANIZATION, Verb.INVITE_CITY, Verb.MOVE_CITY}
"""The rights that only owners have."""


def test_it_asks_for_a_right_that_an_admin_has_or_that_is_the_owners_own(operation: Operation[Any, Any]) -> None:
    assert isinstance(operation.verb, Verb)
    assert operation.verb in RIGHTS[Role.ADMIN] | OF_OWNERS
    assert operation.verb in RIGHTS[Role.OWNER]


def test_no_two_operations_share_a_command_a_tool_or_a_route() -> None:
    every = list(table.every())
    words = [one.words for one in every]
    tool_names = [one.tool for one in every if one.tool is not None]
    routes = [(one.http.method, one.http.path) for one in every if one.http is not None]
    for found in (words, tool_names, routes):
        assert len(found) == len(set(found))


def below(path: tuple[str, ...], name: str) -> bool:
    """Whether the command at `path` is the command or in the group that `name` names."""
    return path[: len(name.split())] == tuple(name.split())


def test_every_command_carries_out_an_operation_or_has_its_reason() -> None:
    without = {
        " ".join(path)
        for path, command in every_command().items()
        if operation_of(command) is None and not any(below(path, name) for name in EXEMPT)
    }
    assert without == set()


def test_every_operation_that_a_command_names_is_in_the_table() -> None:
    named = {operation_of(command) for command in every_command().values()} - {None}
    assert named - set(table.TABLE) == set()


def test_the_exemptions_are_few_each_with_a_reason_and_none_of_them_is_out_of_date() -> None:
    assert len(EXEMPT) <= MOST_EXEMPT
    assert all(len(reason.split()) > 3 for reason in EXEMPT.values())
    for name in EXEMPT:
        found = [command for path, command in every_command().items() if below(path, name)]
        assert found, f"`lamp {name}` is gone"
        assert all(operation_of(command) is None for command in found), f"`lamp {name}` carries out an operation"


def test_every_tool_comes_from_the_table() -> None:
    declared = {one.tool for one in table.every() if one.tool is not None}
    assert {tool.name for tool in tools()} == declared


NOT_OVER_HTTP = {
    "agent.attach": "answers the command that a terminal on the city's own machine runs",
    "city.backup": "writes a file where the command runs; over HTTP any path of the machine could be named",
    "city.uninstall": "ends the process that would carry it out",
    "city.open": "makes the link by which a browser on this machine signs in as the owner",
}
"""Operations without a route, with the reason of each."""


def test_every_operation_has_a_route_or_its_reason() -> None:
    without = {one.name for one in table.every() if one.http is None}
    assert without == set(NOT_OVER_HTTP)
    assert all(len(reason.split()) > 3 for reason in NOT_OVER_HTTP.values())


def test_every_route_names_fields_of_its_request_and_keys_of_its_answer(operation: Operation[Any, Any]) -> None:
    http = operation.http
    if http is None:
        return
    kind = operation.request if operation.reads is None else operation.fields_of
    assert set(re.findall(r"{(\w+)}", http.path)) <= {one.name for one in fields(kind)}
    keys = {key_of(one) for part in parts_of(operation.answer) for one in fields(part)}
    assert set(re.findall(r"{(\w+)}", http.location or "")) <= keys
    if http.page is not None:
        assert http.page.cursor in {one.name for one in fields(kind)}
        assert http.page.key in keys


def test_every_route_comes_from_the_table_but_those_that_tell_whether_the_server_lives() -> None:
    nobody: Any = None
    of_table = api.routes(CityOperations(nobody, nobody, nobody, nobody, stopping=nobody))
    served = [route for route in build(Surface(nobody, nobody, of_table)).routes if isinstance(route, Route)]
    found = {(method, route.path) for route in served for method in route.methods or () if method != "HEAD"}
    declared = {(one.http.method, ROOT + one.http.path) for one in table.every() if one.http is not None}
    assert found - declared == {("GET", path) for path in OPEN_PATHS}
    assert declared <= found
