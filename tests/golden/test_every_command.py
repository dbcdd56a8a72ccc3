"""Every command there is has a golden file; the few that have none say why."""

from collections.abc import Iterator

import click
import golden_files

from lamplighter.cli.main import root

WITHOUT = {
    "agent-take-over": "needs a page of the console that watches the terminal; tests/web/test_terminal.py has that",
    "audit-export": "prints what `audit list` does, an entry a line, whether JSON is asked for or not",
    "completion": "prints a script for a shell, whether JSON is asked for or not",
    "mcp": "speaks the Model Context Protocol on its standard output; its tools have golden files",
}


def commands(group: click.Group, *path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        elif command is not None:
            yield "-".join((*path, name))


def on_record() -> set[str]:
    """The commands that golden files are named for; what follows `--` tells several of one command apart."""
    return {path.stem.partition("--")[0] for path in golden_files.HERE.glob("commands_*/*.json")}


def test_every_command_has_a_golden_file_or_a_reason() -> None:
    assert set(commands(root)) - on_record() == set(WITHOUT)


def test_no_golden_file_is_of_a_command_that_is_gone() -> None:
    assert on_record() - set(commands(root)) == set()
