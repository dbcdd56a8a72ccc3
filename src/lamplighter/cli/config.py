"""`lamp config`: the configuration that city.toml and the files it names result in."""

from typing import TYPE_CHECKING

import click

from lamplighter.cli import output
from lamplighter.cli.base import tells_problems
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.cli.words import counted
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.config import ExplainConfig, SettingView, ShowConfig, ShownView


def _show(found: "ShownView", _ask: "ShowConfig") -> None:
    click.echo(found.toml.rstrip("\n"))


def _explain(found: "list[SettingView]", _ask: "ExplainConfig") -> None:
    columns = {
        "KEY": "key", "VALUE": "value", "LAYER": "layer", "FILE": Col("file", "path"), "LINE": Col("line", "number"),
    }  # fmt: skip
    output.table(to_json(found), columns, empty="Nothing is set.")


config = Subject(
    "config",
    "The configuration: one value from many layers, each with its place.",
    {"show": _show, "explain": _explain},
)


@config.command("check")
@click.option("--strict", is_flag=True, help="Notes count as problems, but for those about settings that are not used.")
@carries_out("config.check")
def check(strict: bool) -> None:  # noqa: FBT001  click passes flags by name
    """Whether the configuration is right; every problem at once, each with file, key and line."""
    from lamplighter.services.config import CHECK, CheckConfig

    tells_problems()
    found = do(CHECK, CheckConfig(strict))
    told = f"The configuration is right: {counted(found.agents, 'agent')}, {counted(found.rigs, 'rig')}."
    output.record(to_json(found), "\n".join([*(f"note: {note}" for note in found.notes), told]))


def command_for(_name: str) -> click.Command:
    return config
