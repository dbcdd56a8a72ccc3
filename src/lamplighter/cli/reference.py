"""Generates the reference page of the commands from their definitions."""

from collections.abc import Iterator

import click

from lamplighter.cli.base import meaning_of
from lamplighter.cli.main import root

COMMON = {"--city", "--json", "--help", "-h", "--url", "--context", "--token", "--token-file"}


def reference() -> str:
    """The content of docs/reference/commands.md; a test checks that they are equal."""
    head = [
        "# Commands",
        "",
        "Every command takes `--city PATH` (else `LAMP_CITY`, else the city around where you stand) and `--json`. For",
        "[a city on another machine](../how-to/from-another-machine.md) it takes `--url` or `--context`, and",
        "`--token` or `--token-file`.",
        "Exit codes: 0 ok, 1 no, 2 usage, 3 not found, 4 conflict, 5 unavailable, 6 the city's state is gone. Errors",
        "go to standard error; with `--json` as `{type, title, detail, hint}`.",
        "Tables, sentences and errors show the last six characters of an id, `show` and `--json` the whole id; every",
        "command takes both ([ids](../how-to/see-what-happens.md#ids)).",
        "",
    ]
    return "\n".join([*head, *_group(root, ("lamp",))]).rstrip() + "\n"


def _group(group: click.Group, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _group(command, (*path, name))
        else:
            yield from _command(command, (*path, name))


def _command(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
    options = [param for param in command.params if isinstance(param, click.Option) and not COMMON & set(param.opts)]
    yield f"## `{' '.join([*path, *arguments])}`"
    yield ""
    yield " ".join((command.help or "").split())
    yield ""
    meanings = [(one, text) for one in command.params if isinstance(one, click.Argument) and (text := meaning_of(one))]
    if meanings:
        yield from (f"- `{_argument(argument).strip('[]')}`: {text}" for argument, text in meanings)
        yield ""
    if options:
        yield "| option | meaning |"
        yield "|---|---|"
        for option in options:
            yield f"| `{_option(option)}` | {option.help or ''}{_default(option)} |"
        yield ""


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    return name if argument.required else f"[{name.strip('[]')}]"


def _option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or (option.name or '').upper()}"
    return f"{', '.join(option.opts)}{value}"


def _default(option: click.Option) -> str:
    return f" Default: `{option.default}`." if option.show_default else ""
