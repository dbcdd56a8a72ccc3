"""`lamp rig`: project directories registered with the city."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamplighter.cli import output
from lamplighter.cli.base import remote, tells_problems
from lamplighter.cli.completing import names
from lamplighter.cli.operations import Subject, carries_out, do
from lamplighter.cli.output import Col
from lamplighter.cli.suspend import note_left
from lamplighter.kit.shapes import to_json

if TYPE_CHECKING:
    from lamplighter.services.operation import Operation
    from lamplighter.services.rigs import ListRigs, RigView

COLUMNS = {
    "NAME": "name", "STATE": Col("state", "state"), "PREFIX": Col("prefix", "word"),
    "AGENTS": Col("agents", "number", always=True), "PATH": Col("path", "path"),
}  # fmt: skip


def _list(rigs: "list[RigView]", _ask: "ListRigs") -> None:
    rows = [to_json(one) | {"state": _state(one)} for one in rigs]
    output.table(rows, COLUMNS, empty="No rigs. `lamp rig add PATH` registers a project directory.")


def _state(one: "RigView") -> str:
    if not one.exists:
        return "missing"
    return "suspended" if one.suspended else "on"


rig = Subject("rig", "Project directories registered with the city.", {"list": _list})


@rig.command("add")
@click.argument("path")
@click.option("--name", help="Its name; the directory's name when left out.")
@click.option("--prefix", help="Prefix of its beads; derived from the name when left out.")
@click.option("--topology", help="A topology whose agents join the rig.")
@carries_out("rig.add")
def add(path: str, name: str | None, prefix: str | None, topology: str | None) -> None:
    """Register the project directory PATH."""
    from lamplighter.services.rigs import ADD, AddRig

    tells_problems()
    added = do(ADD, AddRig(_whole(path), name, prefix, topology))
    output.record(to_json(added), f"Added rig {added.name} ({added.prefix}).")


def _whole(path: str) -> str:
    """The path from the root; one on another machine is looked for there as it is."""
    return str(Path(path).resolve()) if remote() is None else path


@rig.command("suspend")
@click.argument("name", shell_complete=names("rig"))
@carries_out("rig.suspend")
def suspend(name: str) -> None:
    """Start none of its agents and fire none of its automations."""
    from lamplighter.services.rigs import SUSPEND, SuspendRig

    _switch(SUSPEND, SuspendRig(name), "suspended")


@rig.command("resume")
@click.argument("name", shell_complete=names("rig"))
@carries_out("rig.resume")
def resume(name: str) -> None:
    """Lift its suspension."""
    from lamplighter.services.rigs import RESUME, ResumeRig

    _switch(RESUME, ResumeRig(name), "not suspended")


def _switch(operation: "Operation[Any, Any]", ask: Any, word: str) -> None:
    tells_problems()
    done = do(operation, ask)
    text = f"Rig {ask.name} is {word} now." if done.changed else f"Rig {ask.name} was {word} already."
    output.record(to_json(done), text)
    if done.suspended:
        note_left(lambda agent: agent.rig == ask.name)


def command_for(_name: str) -> click.Command:
    return rig
